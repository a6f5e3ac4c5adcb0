/** Test persons over real HTTP: guests, and persons who signed in by a code from the sandbox's outbox. */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { computeTotp, readSecret } from '../people/identity/signed-in.ts'

const session = z.object({ sessionToken: z.string(), account: z.looseObject({ id: z.string() }) })
const outbox = z.object({ messages: z.array(z.object({ destination: z.string(), code: z.string() })) })

export interface Person {
  readonly token: string
  readonly accountId: string
  /** Sends JSON and reads JSON, with this person's session. */
  send(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: Record<string, unknown> }>
}

interface JsonRequest {
  body?: unknown
  headers?: Record<string, string>
}

/** Sends one JSON request. */
export async function requestJson(
  origin: string,
  method: string,
  path: string,
  request: JsonRequest = {},
): Promise<{ status: number; body: Record<string, unknown> }> {
  const { isReplayed: _isReplayed, ...answer } = await requestReplayable(origin, method, path, request)
  return answer
}

/** Sends one JSON request, and tells whether the stored answer of an earlier one came back. */
export async function requestReplayable(
  origin: string,
  method: string,
  path: string,
  { body, headers = {} }: JsonRequest,
): Promise<{ status: number; body: Record<string, unknown>; isReplayed: boolean }> {
  const response = await fetch(`${origin}${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return {
    status: response.status,
    body: z.record(z.string(), z.unknown()).parse(await response.json()),
    isReplayed: response.headers.get('idempotency-replayed') === 'true',
  }
}

export function personFrom(origin: string, answer: unknown): Person {
  const { sessionToken: token, account } = session.parse(answer)
  return {
    token,
    accountId: account.id,
    send: (method, path, body, headers = {}) =>
      requestJson(origin, method, path, { body, headers: { ...headers, authorization: `Bearer ${token}` } }),
  }
}

export async function newGuest(origin: string): Promise<Person> {
  return personFrom(origin, (await requestJson(origin, 'POST', '/api/auth/guest')).body)
}

/** Signs in by e-mail; a new address creates a new account. */
export async function signInByEmail(origin: string, destination: string): Promise<Person> {
  const { body: started } = await requestJson(origin, 'POST', '/api/auth/otp/start', {
    body: { channel: 'email', destination },
  })
  const { challengeId } = started
  const code = await lastCodeTo(origin, destination)
  const { body } = await requestJson(origin, 'POST', '/api/auth/otp/verify', { body: { challengeId, code } })
  return personFrom(origin, body)
}

/** Reads the newest code sent to an address from the sandbox's outbox. */
export async function lastCodeTo(origin: string, destination: string): Promise<string> {
  const { messages } = outbox.parse((await requestJson(origin, 'GET', '/sandbox/outbox')).body)
  const found = messages.find((message) => message.destination === destination && message.code !== '')
  if (found === undefined) throw new Error(`No code was sent to ${destination}.`)
  return found.code
}

/** An e-mail address that nobody else uses on a shared gateway. */
export function newMailbox(name: string): string {
  return `${name}-${randomUUID()}@example.com`
}

/** Enrolls and activates a second factor, which steps this session up. @returns its base32 secret. */
export async function enrollMfa(person: Person): Promise<string> {
  const { body } = await person.send('POST', '/api/security/mfa', { action: 'enroll' })
  const secret = readSecret(body.otpauthUri)
  const code = computeTotp(secret, new Date())
  const { status } = await person.send('POST', '/api/security/mfa', { action: 'activate', code })
  if (status !== 200) throw new Error(`the second factor was not activated: ${status}`)
  return secret
}
