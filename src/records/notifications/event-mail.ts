/** Mails about events other than requests for approval. */
import { z } from 'zod'
import { type Asset, assetDecimals, toDecimal } from '../../core/money/money.ts'
import type { Connection } from '../../storage/database.ts'
import type { MailText } from './approval-mail.ts'
import type { ClaimedEvent, ToldEvent } from './queue.ts'
import { quoteText } from './quote-text.ts'

/** Events that one mail describes. */
const MAX_DESCRIBED = 25

interface MailKind {
  readonly subject: string
  /** Sentence about one event. */
  readonly describe: (database: Connection, event: ToldEvent) => string | Promise<string>
  /** @param site origin of the pages. */
  readonly advice: (site: string) => string
}

const knownAsset = z.custom<Asset>((name) => typeof name === 'string' && name in assetDecimals)
const shortfall = z.looseObject({ asset: knownAsset, frozenUnits: z.string(), uncoveredUnits: z.string() })
const locked = z.looseObject({ reason: z.string().nullable() })
const failing = z.looseObject({ operation: z.string() })
const asked = z.looseObject({ asset: knownAsset, units: z.string(), receivedUnits: z.string() })
const denied = z.looseObject({
  asset: z.string(),
  amount: z.string(),
  seller: z.looseObject({ origin: z.string() }).nullish(),
})

const lockReasons: Readonly<Record<string, string>> = {
  person: 'by a signed-in person',
  second_factor: 'after too many wrong second factors',
  admin: 'by an administrator',
}

/** A request for money, in words without what its maker wrote. */
function describeRequest({ object_id: id, data, at }: ToldEvent, words: string): string {
  const { asset, units, receivedUnits } = asked.parse(data)
  const [amount, received] = [units, receivedUnits].map((one) => toDecimal({ asset, units: BigInt(one) }))
  return `${at.toISOString()}: ${words} for ${amount} ${asset} (${id}). ${received} ${asset} arrived for it in all.`
}

const seeAccounts = (site: string) => `See it at ${site}/accounts.`

const kinds: Readonly<Record<string, MailKind>> = {
  'security.locked': {
    subject: 'Your Bursar account was locked',
    describe: (_database, { data, at }) =>
      `Your Bursar account was locked ${lockReasons[locked.parse(data).reason ?? ''] ?? ''} on ${at.toISOString()}. Its keys and agents have stopped working.`,
    advice: (site) => `Recover it at ${site}/sign-in.`,
  },
  'security.unlocked': {
    subject: 'Your Bursar account was unlocked',
    describe: (_database, { at }) => `Your Bursar account was unlocked on ${at.toISOString()}.`,
    advice: (site) => `If that was not you, lock the account and recover it at ${site}/sign-in.`,
  },
  'wallet.shortfall': {
    subject: 'Money of your Bursar wallet is missing on the chain',
    describe: (_database, { data, at }) => {
      const { asset, frozenUnits, uncoveredUnits } = shortfall.parse(data)
      const [frozen, uncovered] = [frozenUnits, uncoveredUnits].map(BigInt)
      if (!frozen && !uncovered)
        return `${at.toISOString()}: the missing ${asset} of your wallet is covered again.`
      const [missing, held] = [frozen, uncovered].map((units = 0n) => toDecimal({ asset, units }))
      return `${at.toISOString()}: the chain holds less ${asset} than the books of your wallet. ${missing} ${asset} cannot be spent, and ${held} ${asset} of open spends is not covered.`
    },
    advice: (site) => `See your wallet at ${site}/.`,
  },
  'webhook.disabled': {
    subject: 'A webhook endpoint was disabled',
    describe: (_database, { object_id: id, at }) =>
      `A webhook endpoint that failed for two days was disabled for your Bursar account on ${at.toISOString()}: ${id}.`,
    advice: () => 'What happened since is at GET /api/events; activate the endpoint to receive events again.',
  },
  'schedule.failing': {
    subject: 'A schedule of your Bursar account has failed three times',
    describe: (_database, { object_id: id, data, at }) =>
      `${at.toISOString()}: the last three runs of a schedule (${failing.parse(data).operation}, ${id}) failed. It stops until you let it go on.`,
    advice: (site) => `See it at ${site}/schedules.`,
  },
  'request.paid': {
    subject: 'A request for money is paid',
    describe: (_database, event) => describeRequest(event, 'your request was paid'),
    advice: seeAccounts,
  },
  'request.overpaid': {
    subject: 'More arrived for a request that was paid',
    describe: (_database, event) =>
      describeRequest(event, 'more than you asked for arrived for your request'),
    advice: seeAccounts,
  },
  'request.paid_late': {
    subject: 'Money arrived for a request that is over',
    describe: (_database, event) => describeRequest(event, 'money arrived late for your request'),
    advice: seeAccounts,
  },
  'decision.denied': {
    subject: 'A seller names another payee',
    describe: async ({ kysely }, { object_id: id, at }) => {
      const row = await kysely
        .selectFrom('decision')
        .leftJoin('access_key', 'access_key.id', 'decision.key_id')
        .select(['decision.facts', 'access_key.name'])
        .where('decision.id', '=', id)
        .executeTakeFirstOrThrow()
      const { amount, asset, seller } = denied.parse(row.facts)
      return `${at.toISOString()}: a purchase of ${amount} ${asset} by your agent “${quoteText(row.name ?? '')}” was denied, because the seller ${quoteText(seller?.origin ?? '')} names another payee than before. Nothing was paid.`
    },
    advice: () => 'Ask the seller before you allow the new payee.',
  },
}

/** Describes one event in a title and a sentence. */
export async function describeEvent(
  database: Connection,
  event: ToldEvent,
): Promise<{ title: string; body: string }> {
  const kind = kinds[event.type]
  if (kind === undefined) throw new Error(`no message is written about ${event.type}`)
  return { title: kind.subject, body: await kind.describe(database, event) }
}

/** Writes the mail about events of one type. @param site origin of the pages. */
export async function writeEventMail(
  database: Connection,
  { events, site }: { events: readonly [ClaimedEvent, ...ClaimedEvent[]]; site: string },
): Promise<MailText> {
  const kind = kinds[events[0].type]
  if (kind === undefined) throw new Error(`no mail is written about ${events[0].type}`)
  const lines: string[] = []
  for (const event of events.slice(0, MAX_DESCRIBED)) lines.push(await kind.describe(database, event))
  const more = events.length > lines.length ? [`… and ${events.length - lines.length} more.`] : []
  return { subject: kind.subject, text: [...lines, ...more, kind.advice(site)].join('\n\n') }
}
