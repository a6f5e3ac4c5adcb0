/**
 * `bursar agent register`: creates a key pair, shows the owner's page, and writes the key file once the owner has
 * approved. Only the public key leaves this machine. @see https://www.rfc-editor.org/rfc/rfc8628
 */
import { sign } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { systemClock } from '../base/clock.ts'
import { visibleText } from '../base/untrusted-text.ts'
import { rootCause } from '../failures/root-cause.ts'
import { registrationText } from '../identity/keys/registration-proof.ts'
import { newKey, requireNewFile, writeKeyFile } from './key-file.ts'

const MINUTE_MS = 60_000

const ANSWER_MS = 15_000

/** Text that is shown on a terminal. */
const shown = z.string().transform(visibleText)

const started = z.object({
  code: z.string(),
  secret: z.string(),
  userCode: shown,
  connectUrl: shown,
  intervalSeconds: z.number().min(1).max(60),
  expiresAt: z.coerce.date(),
})

const outcome = z.object({
  status: z.enum(['pending', 'approved', 'rejected', 'expired']),
  key: z.object({ agentId: shown, accountId: shown, scopes: z.array(shown) }).nullable(),
})

const problem = z
  .object({ detail: shown.default(''), hint: shown.default('') })
  .catch({ detail: '', hint: '' })

/** @returns exit code 0 once the file is written. @throws Error with the reason. */
export async function registerAgent({
  origin,
  name,
  out,
}: {
  origin: string
  name: string
  out: string
}): Promise<number> {
  requireNewFile(out)
  const key = newKey()
  const signedAt = systemClock().toISOString()
  const proof = sign(null, Buffer.from(registrationText(origin, signedAt)), key.privateKey)
  const request = { name, publicKey: key.publicKey.x, signedAt, proof: proof.toString('base64url') }
  const answer = await post(origin, '/api/agents/registrations', request)
  if (!answer.ok) throw rejection(origin, answer)
  const registration = started.parse(answer.body)
  tell(`Open this page, and approve the agent there as its owner:\n\n  ${registration.connectUrl}\n`)
  tell(`The page must show the code ${registration.userCode} and the key ${key.keyId}.`)
  const { status, key: registered } = await decided(origin, registration)
  if (status === 'rejected') throw new Error('The owner rejected the agent. Nothing was written.')
  if (status !== 'approved') throw new Error('Nobody approved the agent in time. Nothing was written.')
  if (registered === null) throw new Error('The owner has already revoked the agent. Nothing was written.')
  writeKeyFile(out, name, key)
  tell(`Approved. The private key is in ${out}.`)
  process.stdout.write(`${JSON.stringify({ name, keyId: key.keyId, ...registered }, null, 2)}\n`)
  return 0
}

/** Asks until the owner has decided. An unreachable gateway may come back, so only time ends the wait. */
async function decided(
  origin: string,
  { code, secret, intervalSeconds, expiresAt }: z.output<typeof started>,
): Promise<z.output<typeof outcome>> {
  const path = `/api/agents/registrations/${encodeURIComponent(code)}/outcome`
  let toldMinutes = Number.POSITIVE_INFINITY
  for (;;) {
    const leftMs = expiresAt.getTime() - systemClock().getTime()
    const answer = await post(origin, path, { secret }).catch(() => null)
    if (answer?.ok === true) {
      const found = outcome.parse(answer.body)
      if (found.status !== 'pending') return found
    } else if (answer?.status === 404) return { status: 'expired', key: null }
    // The gateway says when it has expired, unless it cannot be reached.
    if (leftMs < -MINUTE_MS) return { status: 'expired', key: null }
    const minutes = Math.max(1, Math.ceil(leftMs / MINUTE_MS))
    if (minutes < toldMinutes) tell(`Waiting for the owner, ${minutes} min left …`)
    toldMinutes = Math.min(minutes, toldMinutes)
    await sleep(1_000 * Math.max(intervalSeconds, answer?.retryAfter ?? 0))
  }
}

/** @throws Error when the gateway cannot be reached. */
async function post(origin: string, path: string, body: object) {
  const response = await fetch(new URL(path, origin), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(ANSWER_MS),
  }).catch((error: unknown) => {
    throw new Error(`The gateway at ${origin} is unreachable: ${rootCause(error)}.`)
  })
  const { ok, status, headers } = response
  const retryAfter = Number(headers.get('retry-after') ?? 0)
  return { ok, status, retryAfter, body: await response.json().catch((): unknown => null) }
}

function rejection(origin: string, { status, body }: { status: number; body: unknown }): Error {
  const { detail, hint } = problem.parse(body)
  return new Error(`The gateway at ${origin} answered ${status}. ${detail} ${hint}`.trim())
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}
