/**
 * `bursar agent register`: creates a key pair, shows the owner's page, and writes the key file once the owner has
 * approved. Only the public key leaves this machine. @see https://www.rfc-editor.org/rfc/rfc8628
 */
import { sign } from 'node:crypto'
import { z } from 'zod'
import { systemClock } from '../core/base/clock.ts'
import { timers } from '../core/base/timers.ts'
import { visibleText } from '../core/base/untrusted-text.ts'
import { rootCause } from '../core/failures/root-cause.ts'
import { registrationText } from '../people/identity/keys/registration-proof.ts'
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
  const { data: registration } = started.safeParse(answer.body)
  if (registration === undefined) throw rejection(origin, answer)
  tell(`Open this page, and approve the agent there as its owner:\n\n  ${registration.connectUrl}\n`)
  tell(`The page must show the code ${registration.userCode} and the key ${key.keyId}.`)
  const { status, key: registered } = await awaitDecision(origin, registration)
  if (status === 'rejected') throw new Error('The owner rejected the agent. Nothing was written.')
  if (status !== 'approved') throw new Error('Nobody approved the agent in time. Nothing was written.')
  if (registered === null) throw new Error('The owner has already revoked the agent. Nothing was written.')
  try {
    writeKeyFile(out, name, key, origin)
  } catch (cause) {
    const why = rootCause(cause)
    throw new Error(`The key could not be written, so revoke ${registered.agentId}: ${why}`, { cause })
  }
  tell(`Approved by the owner of ${registered.accountId}. The private key is in ${out}.`)
  process.stdout.write(`${JSON.stringify({ name, keyId: key.keyId, ...registered }, null, 2)}\n`)
  return 0
}

/**
 * Asks until the owner has decided. An unreachable gateway may come back, so only time ends the wait.
 * @throws Error when the gateway cannot tell the decision.
 */
async function awaitDecision(
  origin: string,
  { code, secret, intervalSeconds, expiresAt }: z.output<typeof started>,
): Promise<z.output<typeof outcome>> {
  const path = `/api/agents/registrations/${encodeURIComponent(code)}/outcome`
  for (let toldMinutes = Number.POSITIVE_INFINITY; ; ) {
    const answer = await post(origin, path, { secret }).catch(() => null)
    const { data: found } = outcome.safeParse(answer?.body)
    if (found !== undefined && found.status !== 'pending') return found
    const leftMs = expiresAt.getTime() - systemClock().getTime()
    if (answer?.status === 404 || leftMs < -MINUTE_MS)
      throw new Error(
        `The gateway at ${origin} does not tell the decision. Nothing was written: revoke the agent if it was approved.`,
      )
    const minutes = Math.max(1, Math.ceil(leftMs / MINUTE_MS))
    if (minutes < toldMinutes) tell(`Waiting for the owner, ${minutes} min left …`)
    toldMinutes = Math.min(minutes, toldMinutes)
    await timers.sleep(1_000 * Math.max(intervalSeconds, answer?.retryAfter ?? 0))
  }
}

/** @throws Error when the gateway cannot be reached. */
async function post(origin: string, path: string, body: object) {
  const response = await fetch(new URL(path, origin), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: timers.deadline(ANSWER_MS),
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
