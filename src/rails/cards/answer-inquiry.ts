/** Answers balance inquiries: never more than a purchase could take now, and zero when none would be approved. */

import { budgetPeriods, budgetRules, type PeriodUsage } from '../../../policies/budget.ts'
import { maxSingleSpend } from '../../../policies/kyc.ts'
import type { Policy } from '../../../policies/policy.ts'
import { toUsdMicros } from '../../../policies/usd.ts'
import { sumOpenDebts } from '../../books/debts/debts.ts'
import type { Coverage } from '../../books/spending/coverage.ts'
import { type OwnerCap, readOwnerCap } from '../../books/spending/owner-cap.ts'
import { readUsage } from '../../books/spending/usage.ts'
import { utcDay } from '../../core/base/clock.ts'
import type { CardAnswer, CardAuthorization } from '../../providers/card-processor/port.ts'
import { latestOrDollars, type Rates } from '../../providers/rates/port.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'
import { fundedCents, listFundings, nameChains } from './fundings.ts'
import { type CardRefusalDependencies, chooseKycLimits, findRefusal } from './refused-by.ts'
import { buildCardSpend, type CardSpendDependencies } from './spend.ts'
import { type CardWithPolicies, findJudgedCard } from './store.ts'

export interface BalanceInquiryDependencies extends CardRefusalDependencies, CardSpendDependencies {
  readonly database: Connection
  /** The default first. */
  readonly chains: { readonly all: readonly { readonly name: string }[] }
  readonly rates: Rates
  /** Reads how much cards may spend from an owner-held wallet on each chain that can be read. */
  readonly readCoverages: (accountId: string) => Promise<readonly Coverage[]>
}

/** Answers an inquiry without holding anything. */
export async function answerInquiry(
  parts: BalanceInquiryDependencies,
  request: CardAuthorization,
  now: Date,
): Promise<CardAnswer> {
  const { database, rates, settings, parsePolicy } = parts
  const { token, cardToken } = request
  const buildDecline = (reason: CardAnswer['reason']) => ({ token, reason, asked: 0n, approved: 0n })
  const card = await findJudgedCard(database, cardToken)
  if (card === undefined) return buildDecline('unknown_card')
  const refusal = await findRefusal(parts, card, { ...request, units: 0n }, now)
  if (refusal !== null) return buildDecline(refusal)
  if ((await sumOpenDebts(database, card.accountId)).length > 0)
    return { ...buildDecline('approved'), balance: 0n }
  if (card.singleUse !== null)
    return { ...buildDecline('approved'), balance: await readReservedCents(database, card.id) }
  const { isWalletOurs } = card
  const coverages = isWalletOurs ? [] : await parts.readCoverages(card.accountId)
  const table = await latestOrDollars(rates, now)
  const { cardSpreadBps: spreadBps } = parts.settings
  const all = listFundings(card, { table, chains: nameChains(parts.chains), coverages, spreadBps })
  const { fundings, spend } = buildCardSpend(parts, card, { request, units: 0n, all, now })
  if (spend.violations.length > 0) return buildDecline('policy_denied')
  const used = await readUsed(database, card, parts.onCalendar(now))
  const micros = [
    maxSingleSpend(chooseKycLimits(settings, card), card.kycLevel),
    ...(card.key === null ? [] : keyLimits(parsePolicy(card.key), used)),
  ]
  const limits = [
    card.purchaseMax,
    card.dailyMax === null ? null : card.dailyMax - used.cardCents,
    ...micros.map((max) => (max === null ? null : max / 10_000n)),
  ]
  const funded = await fundedCents(database, {
    accountId: card.accountId,
    ...{ isWalletOurs, fundings, coverages },
  })
  const balance = limits.reduce<bigint>(
    (lowest, each) => (each !== null && each < lowest ? each : lowest),
    funded,
  )
  return { ...buildDecline('approved'), balance: balance < 0n ? 0n : balance }
}

const reserved: Statement = {
  name: 'card_reserved_cents',
  text: `select coalesce(sum(h.micros) / 10000, 0)::bigint as units
    from card_single_use s join card_hold h on h.authorization_id = s.reserve_id
    where s.card_id = $1 and s.status = 'open'`,
}

/** What a card for one purchase can still pay. */
async function readReservedCents(database: Connection, cardId: string): Promise<bigint> {
  const { units } = await callForRow<{ readonly units: bigint }>(database, reserved, [cardId])
  return units
}

interface Used {
  readonly cardCents: bigint
  /** Of the card's key; null if it has none. */
  readonly key: PeriodUsage | null
  readonly keys: OwnerCap
}

/** Remaining limits of the key's policy and of the owner's caps. */
function keyLimits(policy: Policy | null, { key, keys }: Used): readonly (bigint | null)[] {
  if (policy === null || key === null) return [0n]
  const { perTransaction, approval } = policy
  return [
    toUsdMicros(perTransaction.max),
    approval === undefined ? null : toUsdMicros(approval.above),
    ...budgetRules(policy).map(({ period, maxMicros, maxCount }) => {
      if (maxCount !== null) return key[period].count < maxCount ? null : 0n
      return maxMicros === null ? null : maxMicros - key[period].usedMicros
    }),
    ...budgetPeriods.map((period) => {
      const { maxMicros, usedMicros } = keys[period]
      return maxMicros === null ? null : maxMicros - usedMicros
    }),
  ]
}

const usage: Statement = {
  name: 'card_usage_today',
  text: 'select coalesce((select units from card_usage where card_id = $1 and day = $2), 0) as "cardCents"',
}

async function readUsed(
  database: Connection,
  { id, accountId, key }: CardWithPolicies,
  now: Date,
): Promise<Used> {
  const { cardCents } = await callForRow<Pick<Used, 'cardCents'>>(database, usage, [id, utcDay(now)])
  return {
    cardCents,
    key: key === null ? null : await readUsage(database, { keyId: key.id }, now),
    keys: await readOwnerCap(database, { accountId, isLocked: false, now }),
  }
}
