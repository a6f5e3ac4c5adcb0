/**
 * `bursar login` and `bursar logout`: a person signs this program in on a page in the browser, so that no token is typed.
 * @see https://www.rfc-editor.org/rfc/rfc8628
 */
import { Bursar, BursarProblem } from '../client/index.ts'
import { systemClock } from '../core/base/clock.ts'
import { timers } from '../core/base/timers.ts'
import { visibleText } from '../core/base/untrusted-text.ts'
import { chooseGateway, describeError, type Env, requirePrivate } from './connect.ts'
import { findStoredSession, sessionsPath, storeSession } from './sessions-file.ts'

/** Tolerance between the clocks of this machine and the gateway. */
const SKEW_MS = 60_000

/** Name in the person's list of sessions. */
const NAME = 'Command line'

/** @returns exit code 0 once the session is stored. @throws Error with the reason. */
export async function login({ url }: { url?: string | undefined }, env: Env): Promise<number> {
  const origin = chooseGateway(url, env)
  requirePrivate(origin)
  // An unusable file is found before the person is asked.
  const before = findStoredSession(env, origin)
  // Without retries: an answer with the session is given once, and the next question finds out.
  const bursar = new Bursar({ url: origin, retries: 0 })
  const { code, userCode, deviceUrl, secret, intervalSeconds, expiresAt } = await explainErrors(
    bursar.auth.devices.start({ name: NAME }),
  )
  tell(`Open this page, compare the code, and allow:\n\n  ${visibleText(deviceUrl)}\n`)
  tell(`The page must show the code ${visibleText(userCode)}. Waiting …`)
  const endsAt = new Date(expiresAt).getTime() + SKEW_MS
  const session = await collectSession(bursar, { code, secret, everyMs: intervalMs(intervalSeconds), endsAt })
  const { sessionToken: token, account } = session
  // Only browsers receive none.
  if (token === undefined) throw new Error('The gateway returned no session token.')
  try {
    storeSession(env, origin, { token, accountId: account.id, expiresAt: session.expiresAt })
  } catch (cause) {
    await end(origin, token)
    throw new Error(`The session could not be stored, and was ended: ${describeError(cause)}`, { cause })
  }
  // The earlier session would stay open without a holder.
  if (before !== undefined) await end(origin, before.token).catch(() => undefined)
  const who = `${visibleText(account.displayName)} (${visibleText(account.id)})`
  tell(`Signed in as ${who} until ${visibleText(session.expiresAt)}. The session is in ${sessionsPath(env)}.`)
  return 0
}

/** Ends the session at the gateway, then forgets it. @throws Error when the gateway cannot be reached: nothing is forgotten. */
export async function logout({ url }: { url?: string | undefined }, env: Env): Promise<number> {
  const origin = chooseGateway(url, env)
  const stored = findStoredSession(env, origin)
  if (stored === undefined) {
    tell(`There is no session for ${origin}.`)
    return 0
  }
  await explainErrors(end(origin, stored.token))
  storeSession(env, origin, undefined)
  tell(`The session at ${origin} has ended.`)
  return 0
}

async function end(origin: string, session: string): Promise<void> {
  await new Bursar({ url: origin, session }).auth.logout()
}

/** Asks until the person has decided. An unreachable gateway may come back, so only time ends the wait. */
async function collectSession(
  bursar: Bursar,
  { code, secret, everyMs, endsAt }: { code: string; secret: string; everyMs: number; endsAt: number },
) {
  for (let waitMs = everyMs; ; ) {
    await timers.sleep(waitMs)
    const { status, session, retryAfter } = await bursar.auth.devices
      .outcome({ code, secret })
      .then((answer) => ({ ...answer, retryAfter: 0 }), orPending)
    if (session !== null) return session
    // A question before the end of a rate limit would restart it.
    waitMs = Math.max(everyMs, 1_000 * retryAfter)
    if (status === 'rejected') throw new Error('The sign-in was rejected. Nothing was stored.')
    if (status === 'collected')
      throw new Error(
        'The session was handed over before and is lost. End it at /api/auth/sessions, and start again.',
      )
    if (status === 'expired' || systemClock().getTime() > endsAt)
      throw new Error('The sign-in was not allowed in time. Nothing was stored.')
  }
}

/** @throws the problem, unless it passes. */
function orPending(error: unknown): { status: 'pending'; session: null; retryAfter: number } {
  const problem = error instanceof BursarProblem ? error : undefined
  if (problem !== undefined && problem.status < 500 && problem.code !== 'rate_limited')
    throw new Error(describeError(error), { cause: error })
  return { status: 'pending', session: null, retryAfter: problem?.problem.retryAfter ?? 0 }
}

async function explainErrors<T>(call: Promise<T>): Promise<T> {
  return call.catch((error: unknown) => {
    throw new Error(describeError(error), { cause: error })
  })
}

/** The interval as the gateway asks for it, from one second to one minute. */
function intervalMs(seconds: number): number {
  return 1_000 * Math.min(60, Math.max(1, Number(seconds) || 1))
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`)
}
