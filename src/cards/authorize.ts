/** The decision on a purchase: the card's controls, the bound key's policy, then limits, budgets and hold in one round trip. */
import { needsApproval } from '../../policies/approval.ts'
import { refusalOf } from '../../policies/cards/controls.ts'
import { evaluate } from '../../policies/evaluate.ts'
import type { Policy } from '../../policies/policy.ts'
import { usdMicrosOf } from '../../policies/usd.ts'
import type { Clock } from '../clock.ts'
import { Failure, type Violation } from '../failure.ts'
import type { NewId } from '../ids.ts'
import type { Log } from '../log.ts'
import { decimalOf } from '../money.ts'
import type { CardAnswer, CardAuthorization, CardReason } from '../providers/card-processor.ts'
import type { RailControls } from '../providers/rail-controls.ts'
import type { Rates } from '../providers/rates.ts'
import type { SpendRequest } from '../spending/reserve.ts'
import { parametersOf } from '../spending/reserve-parameters.ts'
import { type Connection, callForRow, type Database, type Statement } from '../storage/database.ts'
import { closeAuthorization } from './apply-transaction.ts'
import { BANK, type Funding, fundedCents, fundingsOf } from './fundings.ts'
import { findJudgedCard, type JudgedCard } from './store.ts'

/** What deciding needs. @property policyOf a key's policy, parsed. */
export interface Authorizing {
  readonly database: Database
  readonly chain: { readonly name: string }
  readonly rates: Rates
  readonly railControls: Pick<RailControls, 'read'>
  readonly policyOf: (key: NonNullable<JudgedCard['key']>) => Policy | null
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
}

/** The processor declines by itself after six seconds: what was approved later than this is taken back. */
const DEADLINE_MS = 4_500
/** Controls and policies change rarely; whoever changes them all the time gets a decline. */
const MOST_TRIES = 5

const statement: Statement = {
  name: 'card_authorize',
  text: 'select * from card_authorize($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)',
}

interface Row {
  readonly verdict: 'decided' | 'repeated' | 'stale'
  readonly authorization_id: string
  readonly reason: CardReason
  readonly approved: bigint
}

/** What cannot be told at the moment: without it nothing is approved. */
const unknowns: ReadonlySet<string> = new Set(['rates_unavailable', 'controls_unavailable', 'conflict'])

/**
 * Decides on an authorization request, once by its token. What cannot be known is declined. @throws Failure
 * `provider_unavailable` where the database does not answer: the processor asks again, and finds what was decided.
 */
export async function authorizeCard(
  parts: Authorizing,
  request: CardAuthorization,
  asked: { webhookId: string; now: Date },
): Promise<CardAnswer> {
  try {
    return await authorize(parts, request, asked)
  } catch (error) {
    if (!(error instanceof Failure) || !unknowns.has(error.code)) throw error
    parts.log.warn({ err: error, token: request.token }, 'a purchase could not be decided and was declined')
    return { token: request.token, reason: 'unavailable', asked: request.units, approved: 0n }
  }
}

async function authorize(
  parts: Authorizing,
  request: CardAuthorization,
  { webhookId, now }: { webhookId: string; now: Date },
): Promise<CardAnswer> {
  const { token, units: asked } = request
  if (request.type === 'inquiry') return balanceOf(parts, request, now)
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const card = await findJudgedCard(parts.database, request.cardToken)
    if (card === undefined) return { token, reason: 'unknown_card', asked, approved: 0n }
    const row = await decide(parts, card, request, { webhookId, now })
    if (row.verdict === 'stale') continue
    if (row.verdict === 'repeated' && !(await isSameRequest(parts.database, row, { card, request }))) {
      parts.log.error({ token, webhookId }, 'another request came by the name of one that was decided')
      return { token, reason: 'unavailable', asked, approved: 0n }
    }
    if (row.reason !== 'approved') return { token, reason: row.reason, asked, approved: 0n }
    if (row.approved === 0n && asked > 0n && request.type === 'purchase')
      return { token, reason: 'too_late', asked, approved: 0n }
    if (parts.clock().getTime() - now.getTime() > DEADLINE_MS) {
      await closeAuthorization(parts, { token, status: 'voided', at: parts.clock() })
      return { token, reason: 'too_late', asked, approved: 0n }
    }
    return { token, reason: 'approved', asked: unitsOf(request), approved: row.approved }
  }
  throw new Failure('conflict', 'The card kept changing while a purchase was decided; nothing was approved.')
}

/** Whether what was decided is what is asked now: an approval of 5.00 must not be read as one of a part of 500.00. */
async function isSameRequest(
  database: Connection,
  { authorization_id: id }: Row,
  { card, request }: { card: JudgedCard; request: CardAuthorization },
): Promise<boolean> {
  const before = await database.kysely
    .selectFrom('card_authorization')
    .select(['card_id', 'units'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return before.card_id === card.id && before.units === unitsOf(request)
}

/** What is to be held: what gives money takes none. */
function unitsOf({ type, units }: CardAuthorization): bigint {
  return type === 'credit' ? 0n : units
}

async function decide(
  parts: Authorizing,
  card: JudgedCard,
  request: CardAuthorization,
  { webhookId, now }: { webhookId: string; now: Date },
): Promise<Row> {
  const { database, rates, chain, newId } = parts
  const { merchant, channel } = request
  const units = unitsOf(request)
  const all = fundingsOf(card, await rates.latest(now), chain.name)
  const refusal = (await refusedBy(parts, card, { ...request, units }, now)) ?? noFunding(all, units)
  const { fundings, spend } = spendOf(parts, card, { request, units, all, now })
  const about = {
    merchant: merchant.name,
    merchantId: merchant.id,
    mcc: merchant.mcc,
    country: merchant.country,
    channel,
  }
  const row = await callForRow<Row>(database, statement, [
    newId('tx', now),
    card.id,
    card.version,
    request.token,
    webhookId,
    units,
    request.allowsPartial,
    refusal,
    JSON.stringify(about),
    fundings.map(({ place }) => place),
    fundings.map(({ asset }) => asset),
    fundings.map(({ rate }) => rate.toString()),
    JSON.stringify(parametersOf(spend), (_name, value: unknown) =>
      typeof value === 'bigint' ? value.toString() : value,
    ),
  ])
  return row
}

/** What refuses before anything is counted. A paused key is told by the counters, which read it under their lock. */
async function refusedBy(
  { railControls }: Authorizing,
  card: JudgedCard,
  purchase: {
    readonly channel: CardAuthorization['channel']
    readonly merchant: { readonly mcc: string | null }
    readonly units: bigint
  },
  now: Date,
): Promise<CardReason | null> {
  if (card.isAccountLocked) return 'account_locked'
  if (!(await railControls.read('card-payments')).enabled) return 'rail_disabled'
  const refusal = refusalOf(card, {
    channel: purchase.channel,
    mcc: purchase.merchant.mcc,
    units: purchase.units,
  })
  if (refusal !== null) return refusal
  const { key } = card
  if (key === null) return null
  const isOver = key.expiresAt !== null && key.expiresAt.getTime() <= now.getTime()
  return key.status === 'revoked' || isOver ? 'key_not_active' : null
}

function noFunding(fundings: readonly Funding[], units: bigint): CardReason | null {
  return fundings.length === 0 && units > 0n ? 'insufficient_funds' : null
}

/** The spend that the engine is asked for, and the assets that the key's policy lets it be paid from. */
function spendOf(
  { newId, policyOf }: Authorizing,
  card: JudgedCard,
  {
    request: { merchant },
    units,
    all,
    now,
  }: { request: CardAuthorization; units: bigint; all: readonly Funding[]; now: Date },
): { fundings: readonly Funding[]; spend: SpendRequest } {
  const { key } = card
  const policy = key === null ? null : policyOf(key)
  const usdMicros = units * 10_000n
  const counterparty = merchant.id === '' ? null : `merchant:${merchant.id}`
  const violationsFrom = ({ asset, chain }: Pick<Funding, 'asset' | 'chain'>): readonly Violation[] => {
    if (key === null) return []
    if (policy === null) return [noPolicy]
    const facts = {
      category: 'card',
      asset,
      usdMicros,
      chain,
      counterparty,
      mcc: merchant.mcc,
      symbol: null,
    } as const
    return evaluate(policy, facts, now)
  }
  const allowed = all.filter((funding) => violationsFrom(funding).length === 0)
  const [first = { asset: 'USD', chain: null } as const] = all
  const violations = allowed.length > 0 ? [] : violationsFrom(first)
  const spend: SpendRequest = {
    decisionId: newId('dec', now),
    accountId: card.accountId,
    key:
      key === null
        ? null
        : {
            id: key.id,
            policyVersion: key.policyVersion,
            limits: {
              dailyMaxMicros: policy === null ? 0n : usdMicrosOf(policy.dailyBudget.max),
              dailyMaxCount: policy?.dailyBudget.maxCount ?? null,
            },
          },
    policyHash: key?.policyHash ?? null,
    operation: 'cards.authorize',
    facts: {
      category: 'card',
      amount: decimalOf({ asset: 'USD', units }),
      asset: first.asset,
      usdRate: '1',
      usdMicros: usdMicros.toString(),
      chain: first.chain,
      counterparty,
      mcc: merchant.mcc,
      symbol: null,
      approvalId: null,
      found: { cardId: card.id, merchant: merchant.name },
    },
    violations,
    money: { asset: 'USD', units },
    usdMicros,
    counterparty,
    cooldownSeconds: policy?.counterparties?.newPayeeCooldownSec ?? null,
    needsApproval: policy !== null && needsApproval(policy, usdMicros),
    isApproved: false,
    place: first.chain ?? BANK,
    idempotency: null,
    at: now,
  }
  return { fundings: allowed.length > 0 ? allowed : all, spend }
}

/** A key without a policy may spend on nothing. */
const noPolicy: Violation = {
  rule: 'category',
  limit: '',
  used: null,
  requested: null,
  remaining: null,
  resetsAt: null,
}

async function balanceOf(
  { database, rates, chain }: Authorizing,
  { token, cardToken }: CardAuthorization,
  now: Date,
): Promise<CardAnswer> {
  const card = await findJudgedCard(database, cardToken)
  if (card === undefined || card.status !== 'active' || card.isAccountLocked)
    return { token, reason: card === undefined ? 'unknown_card' : 'card_frozen', asked: 0n, approved: 0n }
  const fundings = fundingsOf(card, await rates.latest(now), chain.name)
  const balance = await fundedCents(database, { accountId: card.accountId, fundings })
  return { token, reason: 'approved', asked: 0n, approved: 0n, balance }
}
