/** People with passkeys at a gateway's services: both steps of POST /api/auth/webauthn, without a transport. */
import { z } from 'zod'
import type { Principal } from '../../../src/core/base/principal.ts'
import type { Failure } from '../../../src/core/failures/failure.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { authenticateSession } from '../../../src/people/identity/sessions/sessions.ts'
import webauthn from '../../../tools/auth/webauthn.ts'
import listPasskeys from '../../../tools/security/passkeys/list.ts'
import { buildCall, noon, origin } from '../../kernel/scene.ts'
import { type Credential, newAuthenticator } from './authenticator.ts'

export const challenge = z.strictObject({
  challengeId: z.string(),
  publicKey: z.looseObject({ challenge: z.string() }),
})

export const session = z.strictObject({
  account: z.looseObject({ id: z.string(), displayName: z.string(), guest: z.boolean() }),
  personId: z.string(),
  role: z.literal('owner'),
  sessionToken: z.string(),
  expiresAt: z.string(),
})

const list = z.strictObject({
  passkeys: z.array(z.looseObject({ id: z.string(), lastUsedAt: z.string().nullable() })),
  nextCursor: z.string().nullable(),
})

/** An unauthenticated caller. */
export const anonymousPrincipal: Principal = { kind: 'public' }

/** The single failure of a sign-in, and that of a registration. */
export const signInRejected = { code: 'unauthenticated', message: 'The passkey was not accepted.' }
export const registrationRejected = { code: 'unauthenticated', message: 'The passkey was not registered.' }

/** Minutes after noon. */
export function inMinutes(minutes: number): Date {
  return new Date(noon.getTime() + minutes * 60_000)
}

/** A credential with overridden members in its response. */
export function answer(credential: Credential, response: Record<string, string>): Credential {
  return { ...credential, response: { ...credential.response, ...response } }
}

export function catchRefusal(attempt: Promise<unknown>): Promise<unknown> {
  return attempt.then(
    () => 'accepted',
    (error: Failure) => error.toProblem(),
  )
}

/** A person's device, and its operations. */
export function passkeyScene(services: Services) {
  const device = newAuthenticator(origin)
  const call = async (
    input: Record<string, unknown>,
    as: Principal = anonymousPrincipal,
    now = noon,
    through = services,
  ) => (await run(webauthn, buildCall(through, as, { now }), input)).body
  const begin = async (action: 'register' | 'login', as?: Principal, now?: Date, through?: Services) =>
    challenge.parse(await call({ action, displayName: 'Grace' }, as, now, through))
  const register = async (as?: Principal, on = device) => {
    const { challengeId, publicKey } = await begin('register', as)
    return session.parse(
      await call({ action: 'register', challengeId, credential: on.create(publicKey) }, as),
    )
  }
  const login = async (now = noon, on = device) => {
    const { challengeId, publicKey } = await begin('login', anonymousPrincipal, now)
    return session.parse(
      await call({ action: 'login', challengeId, credential: on.get(publicKey) }, anonymousPrincipal, now),
    )
  }
  const asPerson = async (token: string): Promise<Extract<Principal, { kind: 'session' }>> =>
    (await authenticateSession(services, { token, tokenHolder: 'client' }, noon)).principal
  const readPasskeys = async (as: Principal, page: Record<string, unknown> = {}) =>
    list.parse((await run(listPasskeys, buildCall(services, as), page)).body)
  return { device, call, begin, register, login, asPerson, readPasskeys }
}

/** Result of {@link passkeyScene}. */
export type PasskeyScene = ReturnType<typeof passkeyScene>
