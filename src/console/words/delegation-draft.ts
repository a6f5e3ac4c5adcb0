/** A delegation while it is entered, and the request that it makes. Pure. */
import type { AgentsDelegateRequest, Policy } from '../../client/operations.ts'
import { compareDecimals, isAmount } from './money.ts'
import { pickSpendable } from './policy.ts'

/** What stands in the fields. */
export interface DelegationDraft {
  readonly name: string
  readonly task: string
  /** Scopes that the parent has and the child does not get. */
  readonly withheld: readonly string[]
  readonly amount: string
  /** At a time; empty: as above. */
  readonly each: string
  readonly span: DraftSpan
  /** `YYYY-MM-DDTHH:MM` in the reader's zone, for the span `other`. */
  readonly until: string
  readonly isEarmarked: boolean
  readonly proof: 'bearer' | 'own_key'
  readonly publicKey: string
}

export const spans = [
  ['hour', '1 hour', 3_600],
  ['day', '1 day', 86_400],
  ['week', '1 week', 604_800],
  ['other', 'Other', 0],
] as const

export type DraftSpan = (typeof spans)[number][0]

/** Scope that lets a key delegate further. It is given only by choice. */
export const DELEGATE = 'agents:delegate'

export const emptyDelegation: DelegationDraft = {
  name: '',
  task: '',
  withheld: [DELEGATE],
  amount: '',
  each: '',
  span: 'day',
  until: '',
  isEarmarked: true,
  proof: 'bearer',
  publicKey: '',
}

export type DelegationStep = 'what' | 'money' | 'review'
export type DelegationField = 'name' | 'task' | 'amount' | 'each' | 'until' | 'publicKey'
export type DelegationProblems = Readonly<Partial<Record<DelegationField, string>>>

export const fieldsOfStep: Readonly<Record<DelegationStep, readonly DelegationField[]>> = {
  what: ['name', 'task'],
  money: ['amount', 'each', 'until'],
  review: ['publicKey'],
}

/** Members of the request, and the field that each is entered in. */
const fieldsOfMembers: readonly (readonly [member: string, field: DelegationField])[] = [
  ['policy.totalBudget', 'amount'],
  ['policy.dailyBudget', 'amount'],
  ['policy.perTransaction', 'each'],
  ['expiresAt', 'until'],
  ['publicKey', 'publicKey'],
  ['name', 'name'],
  ['task', 'task'],
]

/** The field that a member of the request is entered in. */
export function findField(member: string): DelegationField | undefined {
  return fieldsOfMembers.find(([name]) => member === name || member.startsWith(`${name}.`))?.[1]
}

/** What is wrong before anything is sent. The gateway knows the rest. @param times as {@link computeEnd} takes them */
export function findDelegationProblems(draft: DelegationDraft, times: DraftTimes): DelegationProblems {
  const { name, task, amount, each, proof, publicKey } = draft
  const end = computeEnd(draft, times)
  const problems: readonly (readonly [DelegationField, string])[] = [
    ['name', name.trim() === '' ? 'Give it a name that you recognize.' : ''],
    [
      'task',
      /^[\x20-\x7e]{0,64}$/.test(task.trim()) ? '' : 'Letters without accents, digits and signs, at most 64.',
    ],
    ['amount', findAmountProblem(amount)],
    [
      'each',
      each === ''
        ? ''
        : findAmountProblem(each) ||
          (isAmount(amount) && compareDecimals(each, amount) > 0 ? 'More than it has in total.' : ''),
    ],
    [
      'until',
      end === null
        ? 'Say until when.'
        : end.getTime() <= times.now.getTime()
          ? 'This has passed. Choose a later time.'
          : '',
    ],
    ['publicKey', proof === 'own_key' && publicKey.trim() === '' ? 'Paste the public key of the agent.' : ''],
  ]
  return Object.fromEntries(problems.filter(([, words]) => words !== ''))
}

function findAmountProblem(amount: string): string {
  if (!isAmount(amount)) return 'An amount such as 2.50.'
  return compareDecimals(amount, '0') === 0 ? 'More than nothing.' : ''
}

/** @property now by the gateway's clock. @property parentEnd ISO 8601; null: never */
interface DraftTimes {
  readonly now: Date
  readonly parentEnd: string | null
}

/** When it ends; null if nothing is chosen. A span ends with the parent at the latest. */
export function computeEnd({ span, until }: DelegationDraft, { now, parentEnd }: DraftTimes): Date | null {
  if (span !== 'other') {
    const seconds = spans.find(([one]) => one === span)?.[2] ?? 0
    const end = now.getTime() + seconds * 1_000
    return new Date(parentEnd === null ? end : Math.min(end, Date.parse(parentEnd)))
  }
  const end = new Date(until)
  return Number.isNaN(end.getTime()) ? null : end
}

/** The parent, as far as a delegation needs it. */
export interface DelegationParent {
  readonly agentId: string
  readonly scopes: readonly string[]
  readonly policy: Policy
}

/** The policy of a draft without problems. Limits that the parent has are never exceeded by what is not entered. */
export function toDelegatedPolicy(
  { amount, each, withheld }: DelegationDraft,
  { policy, scopes }: DelegationParent,
): Policy {
  const { perTransaction, dailyBudget, categories } = policy
  const day = findLess(String(dailyBudget.max), amount)
  return {
    perTransaction: { max: each === '' ? findLess(String(perTransaction.max), day) : each },
    dailyBudget: { max: day },
    totalBudget: { max: amount },
    categories: { allow: [...pickSpendable(categories.allow, keepScopes(scopes, withheld))] },
  }
}

/** Scopes that a child gets. */
export function keepScopes(scopes: readonly string[], withheld: readonly string[]): readonly string[] {
  return scopes.filter((scope) => !withheld.includes(scope))
}

function findLess(one: string, other: string): string {
  return compareDecimals(one, other) < 0 ? one : other
}

/** The request of a draft without problems. @param end from {@link computeEnd} */
export function toDelegation(
  draft: DelegationDraft,
  parent: DelegationParent,
  end: Date,
): AgentsDelegateRequest {
  const { name, task, withheld, isEarmarked, proof, publicKey } = draft
  return {
    parentId: parent.agentId,
    name: name.trim(),
    // They are the parent's own, and the gateway checks them again.
    scopes: keepScopes(parent.scopes, withheld) as AgentsDelegateRequest['scopes'],
    policy: toDelegatedPolicy(draft, parent),
    expiresAt: end.toISOString(),
    earmark: isEarmarked,
    ...(task.trim() === '' ? {} : { task: task.trim() }),
    ...(proof === 'bearer' ? { bearer: true as const } : { publicKey: publicKey.trim() }),
  }
}
