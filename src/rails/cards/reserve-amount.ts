/**
 * Reserves the amount of a card for one purchase before it is issued, under the policy of its key. The reserve is an
 * authorization that no merchant asked for: its purchase takes the held money from it.
 */
import { canonicalJson } from '../../core/base/json.ts'
import { timers } from '../../core/base/timers.ts'
import { Failure } from '../../core/failures/failure.ts'
import type { CardAuthorization, CardReason } from '../../providers/card-processor/port.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import { type CardAuthorizationDependencies, decide } from './authorize.ts'
import type { CardOrder, NewCard } from './order-card.ts'
import { type Card, type CardWithPolicies, readHolder } from './store.ts'

/** Maximum attempts when the key or its policy changes during a decision. */
const MAX_TRIES = 5

/** A reserve that was decided. @property decisionId null when no policy was asked. */
export interface DecidedReserve {
  readonly id: string
  readonly reason: CardReason
  readonly decisionId: string | null
}

/** The reserve's name in place of the processor's. */
function reserveToken(cardId: string): string {
  return `reserve:${cardId}`
}

/**
 * Holds an ordered card's amount, once. @param approvedBy approval under which its owner has it issued.
 * @throws Failure `rates_unavailable`, `controls_unavailable`, `conflict` when the key kept changing.
 */
export async function reserveAmount(
  parts: CardAuthorizationDependencies,
  order: CardOrder,
  { approvedBy, now }: { approvedBy: string | null; now: Date },
): Promise<DecidedReserve> {
  const request = buildRequest(order)
  const { singleUse } = order.wanted
  const reserve = { approvedBy, task: singleUse?.task ?? null }
  const pullUntil = timers.monotonic() + parts.settings.cardPullMs
  let isUnsecured = false
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const card = await findHolder(parts.database, order)
    const asked = { webhookId: request.token, now, isRemembered: false, isUnsecured, reserve }
    const row = await decide(parts, card, request, asked)
    if (row.verdict === 'stale') continue
    if (row.verdict === 'pull') {
      const { pulls, coverages } = row
      const wanted = { accountId: card.accountId, token: request.token, pulls: pulls ?? [], coverages }
      isUnsecured = !(await parts.pull(wanted, Math.max(0, pullUntil - timers.monotonic())))
      continue
    }
    const decided = await findReserve(parts.database, order.id)
    if (decided === undefined) throw new Error('a decided reserve cannot be read')
    return decided
  }
  throw new Failure('conflict', 'The key kept changing while its card was decided; nothing was reserved.')
}

/** Finds the reserve of a card. `too_late`: it was approved and has ended. */
export async function findReserve(
  { kysely }: Connection,
  cardId: string,
): Promise<DecidedReserve | undefined> {
  const row = await kysely
    .selectFrom('card_authorization')
    .select(['id', 'reason', 'status', 'decision_id'])
    .where('processor_token', '=', reserveToken(cardId))
    .executeTakeFirst()
  if (row === undefined) return undefined
  const isOver = row.reason === 'approved' && row.status !== 'pending'
  // Written by card_authorize, with one of these reasons.
  const reason = isOver ? 'too_late' : (row.reason as CardReason)
  return { id: row.id, reason, decisionId: row.decision_id }
}

const release: Statement = {
  name: 'card_reserve_release',
  text: `select verdict from card_apply('voided', $1, 'close', 0, 'voided', $2, '{}', '{}', '{}', '{}')`,
}

/** Frees the reserve of a card that was not and will not be issued. Idempotent. */
export async function releaseReserve(
  database: Connection,
  { cardId, at }: { cardId: string; at: Date },
): Promise<void> {
  await database.call(release, [reserveToken(cardId), at])
}

function buildRequest({ id, wanted: { singleUse } }: CardOrder): CardAuthorization {
  if (singleUse === null) throw new Error('a card for any number of purchases has no reserve')
  const { units, merchant } = singleUse
  return {
    kind: 'authorization',
    token: reserveToken(id),
    eventToken: null,
    fingerprint: canonicalJson({ ...merchant, units: units.toString() }),
    cardToken: id,
    type: 'purchase',
    units,
    merchant: { id: '', name: merchant.name ?? '', mcc: merchant.mcc, country: merchant.country },
    // The card's channels decide on its purchase. A chip has no switch.
    channel: 'chip',
    allowsPartial: false,
  }
}

async function findHolder(
  database: Connection,
  { id, wanted, createdAt }: { id: string; wanted: NewCard; createdAt: Date },
): Promise<CardWithPolicies> {
  const unissued: Card = {
    ...wanted,
    ...{ id, token: id, createdAt, version: 0, brand: '', last4: '', expMonth: 1, expYear: 1 },
    type: 'virtual',
    status: 'active',
  }
  const card = await readHolder(database, unissued)
  if (card === undefined) throw new Error('the account of an ordered card cannot be read')
  return card
}
