/** The reference of the money core: expected spending behaviour as plain lists, with the rules of `policies/`. */
import { needsApproval } from '../../../policies/approval.ts'
import {
  type BudgetPeriod,
  budgetViolations,
  cooldownViolation,
  ownerViolations,
  type PeriodUsage,
} from '../../../policies/budget.ts'
import { buildViolation, type Violation } from '../../../policies/decision.ts'
import type { Policy } from '../../../policies/policy.ts'
import { utcDay } from '../../../src/core/base/clock.ts'

/**
 * A request in the model. @property key its number; null for the person's session. @property isStale true if it names
 * an older policy.
 */
export interface Ask {
  readonly key: number | null
  readonly units: bigint
  readonly isPriced: boolean
  readonly payee: string | null
  readonly call: { readonly key: string; readonly fingerprint: string } | null
  readonly isStale: boolean
  readonly isApproved: boolean
}

export interface ModelSpend {
  readonly decisionId: string
  readonly key: number | null
  readonly day: string
  readonly units: bigint
  readonly usdMicros: bigint
  status: 'reserved' | 'settled' | 'released'
}

/** The expected answer: the members of a SpendVerdict that are equal on every engine. */
export interface ModelAnswer {
  readonly verdict: string
  readonly decisionId?: string
  readonly replayed?: boolean
  readonly violations?: readonly Violation[]
  readonly available?: { readonly asset: 'USDC'; readonly units: bigint }
}

/** The whole history of one account. */
export interface Model {
  now: Date
  deposited: bigint
  caps: Record<BudgetPeriod, bigint | null>
  readonly keys: { policy: Policy; version: number; isPaused: boolean }[]
  readonly spends: ModelSpend[]
  readonly calls: Map<string, { fingerprint: string; at: Date; answer: ModelAnswer; decisionId: string }>
  readonly payees: Map<string, Date>
}

const HOUR_MS = 3_600_000

/** Usage of the periods of `now` by all keys, or one, without released spends. */
export function usageNow(model: Model, key?: number): PeriodUsage {
  const usageOf = (period: BudgetPeriod) => {
    const counted = model.spends.filter(
      (spend) =>
        nameOf(period, spend.day) === nameOf(period, utcDay(model.now)) &&
        spend.status !== 'released' &&
        spend.key !== null &&
        (key === undefined || spend.key === key),
    )
    return {
      usedMicros: counted.reduce((total, { usdMicros }) => total + usdMicros, 0n),
      count: counted.length,
    }
  }
  return { day: usageOf('day'), week: usageOf('week'), month: usageOf('month') }
}

/** The period of a day: the day, its month, or the number of its week since the Monday before 1970. */
function nameOf(period: BudgetPeriod, day: string): string {
  if (period === 'week') return `week ${Math.floor((Date.parse(day) / (24 * HOUR_MS) + 3) / 7)}`
  return period === 'month' ? day.slice(0, 7) : day
}

export function fundsOf({ deposited, spends }: Model): bigint {
  return spends
    .filter(({ status }) => status !== 'released')
    .reduce((left, { units }) => left - units, deposited)
}

function isOpen(model: Model, decisionId: string): boolean {
  return model.spends.some((spend) => spend.decisionId === decisionId && spend.status === 'reserved')
}

/** Decides on a request and records it. @param decisionId a new one. */
export function decide(model: Model, ask: Ask, decisionId: string): ModelAnswer {
  const name = ask.call === null ? null : `${ask.key}:${ask.call.key}`
  const known = name === null ? undefined : model.calls.get(name)
  if (ask.call !== null && known !== undefined) {
    const isOutdated = known.at.getTime() < model.now.getTime() - 24 * HOUR_MS
    const isSame = known.fingerprint === ask.call.fingerprint
    const isTakenOver = ask.isApproved && isSame && known.answer.verdict === 'approval_required'
    const isReplaced = (isOutdated && !isOpen(model, known.decisionId)) || isTakenOver
    if (!isReplaced) return isSame ? replayOf(known) : { verdict: 'fingerprint_mismatch' }
  }
  if (ask.key !== null && ask.isStale) {
    if (name !== null) model.calls.delete(name)
    return { verdict: 'stale_policy' }
  }
  const answer = judge(model, ask, decisionId)
  if (name !== null && ask.call !== null)
    model.calls.set(name, { fingerprint: ask.call.fingerprint, at: model.now, answer, decisionId })
  if (answer.verdict === 'allow')
    model.spends.push({
      decisionId,
      key: ask.key,
      day: utcDay(model.now),
      units: ask.units,
      usdMicros: ask.isPriced ? ask.units : 0n,
      status: 'reserved',
    })
  return answer
}

function replayOf({ answer, decisionId }: { answer: ModelAnswer; decisionId: string }): ModelAnswer {
  return answer.verdict === 'allow' ? { verdict: 'repeated', decisionId } : { ...answer, replayed: true }
}

function microsOf({ day, week, month }: PeriodUsage): Record<BudgetPeriod, bigint> {
  return { day: day.usedMicros, week: week.usedMicros, month: month.usedMicros }
}

function judge(model: Model, ask: Ask, decisionId: string): ModelAnswer {
  const key = ask.key === null ? undefined : model.keys[ask.key]
  const usdMicros = ask.isPriced ? ask.units : null
  const violations =
    key === undefined || ask.key === null
      ? []
      : [
          ...budgetViolations(key.policy, usdMicros, usageNow(model, ask.key), model.now),
          ...ownerViolations(model.caps, usdMicros, microsOf(usageNow(model)), model.now),
          ...[cooldownViolation(key.policy, ask.payee, seen(model, ask, key.policy), model.now) ?? []].flat(),
          ...(key.isPaused ? [buildViolation('paused', {})] : []),
        ]
  if (violations.length > 0) return { verdict: 'deny', decisionId, replayed: false, violations }
  const units = fundsOf(model)
  if (units < ask.units)
    return { verdict: 'insufficient_funds', decisionId, replayed: false, available: { asset: 'USDC', units } }
  if (key !== undefined && !ask.isApproved && needsApproval(key.policy, usdMicros))
    return { verdict: 'approval_required', decisionId, replayed: false }
  return { verdict: 'allow', decisionId }
}

/** Time of a key's first request for a payee under a cool-down; recorded now if it is the first. */
function seen(model: Model, { key, payee }: Ask, { counterparties }: Policy): Date | null {
  if (payee === null || counterparties?.newPayeeCooldownSec === undefined) return null
  const name = `${key}:${payee}`
  const at = model.payees.get(name) ?? model.now
  // A paused key does not start a cool-down.
  if (model.keys[key ?? 0]?.isPaused !== true) model.payees.set(name, at)
  return at
}
