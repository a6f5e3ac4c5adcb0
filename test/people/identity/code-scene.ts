/** People with one-time codes: the tools on a real database, with a settable clock. */
import { z } from 'zod'
import { rateClasses } from '../../../policies/rate-classes.ts'
import { newId, randomToken } from '../../../src/core/base/ids.ts'
import type { Account, Principal } from '../../../src/core/base/principal.ts'
import type { Context, Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { createAccount } from '../../../src/people/identity/accounts.ts'
import { parseDestination, sealAddress } from '../../../src/people/identity/codes/destinations.ts'
import { claimDestination } from '../../../src/people/identity/codes/login-destinations.ts'
import type { Message } from '../../../src/providers/messages/port.ts'
import type { RateLimit } from '../../../src/providers/rate-limiter/port.ts'
import type { Database } from '../../../src/storage/database.ts'
import otpStart from '../../../tools/auth/otp/start.ts'
import otpVerify from '../../../tools/auth/otp/verify.ts'
import recoveryComplete from '../../../tools/auth/recovery/complete.ts'
import recoveryStart from '../../../tools/auth/recovery/start.ts'
import { buildCall, noon, servicesOn } from '../../kernel/scene.ts'

const started = z.strictObject({
  challengeId: z.string(),
  expiresAt: z.string(),
  resendAfter: z.int(),
  publicKey: z.record(z.string(), z.unknown()).optional(),
})
const session = z.object({
  account: z.object({ id: z.string(), displayName: z.string(), guest: z.boolean() }),
  sessionToken: z.string(),
})

export const newMailbox = () => `ada-${randomToken(9).toLowerCase().replace(/\W/g, 'x')}@example.com`

/** Seconds after noon. */
export const inSeconds = (seconds: number) => new Date(noon.getTime() + seconds * 1000)

/** A different code. */
export const differentCode = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, '0')

/** The limits of the contract. @param changes by class name. */
export function buildLimits(
  changes: Readonly<Record<string, RateLimit>> = {},
): ReadonlyMap<string, RateLimit> {
  return new Map([...Object.entries<RateLimit>(rateClasses), ...Object.entries(changes)])
}

/** Limits that no test with many codes reaches. */
export const generous = buildLimits({
  otp_resend: { count: 1000, seconds: 60 },
  otp_destination: { count: 1000, seconds: 3600 },
  recovery: { count: 1000, seconds: 3600 },
  messages: { count: 1000, seconds: 3600 },
  otp_ip: { count: 1000, seconds: 3600 },
})

/** Client that asks for a code. */
type Asking = Pick<Context, 'clientAddress' | 'knownBrowser'>

/** A scene for requesting and submitting codes. */
export async function codeScene(
  database: Database,
  {
    rateLimits = generous,
    ...changes
  }: Partial<Services> & { rateLimits?: Services['settings']['rateLimits'] } = {},
) {
  const sent: Message[] = []
  const base = await servicesOn(database)
  const services: Services = {
    ...base,
    settings: { ...base.settings, rateLimits },
    messages: { channels: ['email', 'sms'], send: async (message) => void sent.push(message) },
    ...changes,
  }
  const call = (principal: Principal, facts: Partial<Context>) => buildCall(services, principal, facts)
  const stranger: Principal = { kind: 'public' }
  const startChallenge = async (tool: typeof otpStart, destination: string, now: Date, from: Asking) => {
    const channel = destination.includes('@') ? 'email' : 'sms'
    const { body } = await run(tool, call(stranger, { ...from, now }), { channel, destination })
    const { challengeId, ...answer } = started.parse(body)
    return { challengeId, code: sent.at(-1)?.code ?? '', answer: { challengeId, ...answer } }
  }
  return {
    services,
    sent,
    start: (destination: string, now = noon, from: Asking = {}) =>
      startChallenge(otpStart, destination, now, from),
    recover: (destination: string, now = noon, from: Asking = {}) =>
      startChallenge(recoveryStart, destination, now, from),
    verify: async (
      shown: { challengeId: string; code: string },
      { now = noon, principal = stranger, link }: { now?: Date; principal?: Principal; link?: boolean } = {},
    ) => {
      const { challengeId, code } = shown
      const raw = { challengeId, code, ...(link === undefined ? {} : { link }) }
      return session.parse((await run(otpVerify, call(principal, { now }), raw)).body)
    },
    complete: async (
      { challengeId, code }: { challengeId: string; code: string },
      { now = noon, credential }: { now?: Date; credential?: object } = {},
    ) => {
      const raw = { challengeId, code, ...(credential === undefined ? {} : { credential }) }
      return session.parse((await run(recoveryComplete, call(stranger, { now }), raw)).body)
    },
    person: async (mailbox: string, displayName = 'Ada'): Promise<Account> => {
      const account = await createAccount({ database, newId }, { displayName, guest: false, at: noon })
      const destination = await parseDestination(services.settings, {
        channel: 'email',
        destination: mailbox,
      })
      const sealedAddress = sealAddress(services.settings, destination)
      await claimDestination(database, { ...destination, sealedAddress, accountId: account.id, at: noon })
      return account
    },
  }
}

/** Number of wrong codes that count against an account. */
export async function countFailures(database: Database, accountId: string): Promise<number> {
  const rows = await database.kysely
    .selectFrom('failed_factor')
    .select('at')
    .where('account_id', '=', accountId)
    .execute()
  return rows.length
}

/** Every row of every table, as text. @param except tables to leave out. */
export async function dumpRows(database: Database, except: readonly string[] = []): Promise<string> {
  const tables = await database.kysely.introspection.getTables()
  const rows = await Promise.all(
    tables
      .filter(({ name }) => !except.includes(name))
      .map(({ name }) =>
        database.call<object>({ name: `everything_${name}`, text: `select t::text from "${name}" t` }, []),
      ),
  )
  return JSON.stringify(rows.flat())
}
