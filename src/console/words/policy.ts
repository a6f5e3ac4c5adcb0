/** A spend policy and its decisions in words. Pure; sentences are made from the policy's own values only. */
import type { ExplainedRule, Policy, Violation } from '../../client/operations.ts'
import { digits } from './digits.ts'
import { formatDecimal, formatUsdExactly } from './money.ts'
import { nameChain, namePayee, shortAddress } from './names.ts'
import { plainText } from './plain-text.ts'
import { formatSpan } from './time.ts'

/** Words in a row; those in objects are values and stand out. */
export type Sentence = readonly (string | { readonly value: string })[]

/** Builds a sentence from a template: what is interpolated stands out. */
function sentence(texts: TemplateStringsArray, ...values: readonly string[]): Sentence {
  return texts.flatMap((text, position) => {
    const value = values[position]
    return value === undefined ? [text] : [text, { value }]
  })
}

export function joinSentence(words: Sentence): string {
  return words.map((word) => (typeof word === 'string' ? word : word.value)).join('')
}

/** Names of categories, as nouns. */
const categoryNames: Readonly<Record<string, string>> = {
  transfer: 'Transfers',
  gasless: 'Relayed payments',
  card: 'Cards',
  x402: 'Purchases, x402',
  invest: 'Investing',
  swap: 'Swaps',
  payout: 'Payouts to banks',
}

export function nameCategory(category: string): string {
  return categoryNames[category] ?? category
}

const means: Readonly<Record<string, string>> = {
  transfer: 'transfer',
  gasless: 'relayed payment',
  card: 'card',
  x402: 'purchase',
  invest: 'investing',
  swap: 'swap',
  payout: 'payout',
}

/** Kinds of shops that owners rule out most, by merchant category code (ISO 18245). */
const shops: Readonly<Record<string, string>> = {
  '4829': 'money transfers',
  '5933': 'pawn shops',
  '5967': 'adult content',
  '6010': 'cash at a bank',
  '6011': 'cash machines',
  '6051': 'crypto and money orders',
  '6211': 'brokers',
  '7273': 'dating',
  '7801': 'online gambling',
  '7802': 'horse racing',
  '7995': 'gambling',
}

/** `gambling (7995)`. */
function nameShop(code: string): string {
  const name = shops[code]
  return name === undefined ? `shops of kind ${code}` : `${name} (${code})`
}

/** Days as the reader calls them, by the policy's short names. */
const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const

type Day = (typeof days)[number]

const dayNames: Readonly<Record<Day, string>> = {
  mon: 'Monday',
  tue: 'Tuesday',
  wed: 'Wednesday',
  thu: 'Thursday',
  fri: 'Friday',
  sat: 'Saturday',
  sun: 'Sunday',
}

/** `Monday to Friday`, `Monday and Sunday`. */
export function nameDays(open: readonly string[]): string {
  const shown = days.filter((day) => open.includes(day))
  const [first, last] = [shown[0], shown.at(-1)]
  if (first === undefined || last === undefined) return 'no day'
  if (shown.length === days.length) return 'every day'
  if (shown.length > 2 && days.indexOf(last) - days.indexOf(first) === shown.length - 1)
    return `${dayNames[first]} to ${dayNames[last]}`
  return list(shown.map((day) => dayNames[day]))
}

/** `a, b and c`. */
function list(items: readonly string[], word = 'and'): string {
  if (items.length < 2) return items[0] ?? ''
  return `${items.slice(0, -1).join(', ')} ${word} ${items.at(-1)}`
}

/** At most three of a list, and how many more. */
function some(items: readonly string[]): string {
  return items.length <= 4 ? list(items) : list([...items.slice(0, 3), `${items.length - 3} more`])
}

/** The whole policy in sentences, the most important first. */
export function describePolicy(policy: Policy): readonly Sentence[] {
  return [
    describeAmounts(policy),
    describeWays(policy),
    ...describeCounts(policy),
    ...describeRepeats(policy),
    ...describeApproval(policy),
    ...describePayees(policy),
    ...describeMerchants(policy),
    ...describeTimes(policy),
  ]
}

function describeAmounts(policy: Policy): Sentence {
  const { perTransaction, dailyBudget, weeklyBudget, monthlyBudget, totalBudget } = policy
  const budgets = [
    [dailyBudget, 'a day'],
    [weeklyBudget, 'a week'],
    [monthlyBudget, 'a month'],
    [totalBudget, 'in total'],
  ] as const
  const known = budgets.flatMap(([budget, span]) =>
    budget === undefined ? [] : [[budget.max, span] as const],
  )
  const spans = known.flatMap(([max, span], position) => {
    const word = position === 0 ? '' : position === known.length - 1 ? ' and ' : ', '
    return [word, { value: usd(max) }, ` ${span}`]
  })
  const joint = known.length > 1 ? ' at a time, ' : ' at a time and '
  return ['Up to ', { value: usd(perTransaction.max) }, joint, ...spans, '.']
}

function describeWays({ categories, assets, chains: onChains }: Policy): Sentence {
  const ways = categories.allow.map((category) => means[category] ?? category)
  if (ways.length === 0) return sentence`It may pay in ${'no way'} at all.`
  const from = assets === undefined ? 'any money' : assets.length === 0 ? 'no money at all' : list(assets)
  if (onChains === undefined) return sentence`By ${list(ways)}, from ${from}.`
  const where = onChains.length === 0 ? 'no chain' : list(onChains.map(nameChain))
  return sentence`By ${list(ways)}, from ${from}, on ${where} only.`
}

function describeCounts({
  dailyBudget,
  weeklyBudget,
  monthlyBudget,
  totalBudget,
}: Policy): readonly Sentence[] {
  const counts = [
    [dailyBudget.maxCount, 'a day'],
    [weeklyBudget?.maxCount, 'a week'],
    [monthlyBudget?.maxCount, 'a month'],
    [totalBudget?.maxCount, 'in total'],
  ] as const
  const known = counts.flatMap(([max, span]) =>
    max === undefined ? [] : [`${formatNumber(max)} payments ${span}`],
  )
  return known.length === 0 ? [] : [sentence`At most ${list(known)}.`]
}

function describeRepeats({ repeatLimit }: Policy): readonly Sentence[] {
  if (repeatLimit === undefined) return []
  const { count, perSec } = repeatLimit
  return [
    sentence`The same payment at most ${countTimes(count)} in ${formatLongSpan(perSec)}; then it stops and asks you.`,
  ]
}

function countTimes(count: number): string {
  return count === 1 ? 'once' : `${formatNumber(count)} times`
}

const DEFAULT_TTL_SEC = 86_400

function describeApproval({ approval }: Policy): readonly Sentence[] {
  if (approval === undefined) return [sentence`It ${'never asks'} you first.`]
  const span = formatLongSpan(approval.ttlSec ?? DEFAULT_TTL_SEC)
  return [sentence`It asks you above ${usd(approval.above)}, with ${span} to answer.`]
}

/** A payee of a policy: an address, the id of a recipient, `contact:NAME`, or the id of a contact that was removed. */
function namePolicyEntry(payee: string): string {
  return payee.startsWith('con_') ? 'a removed contact (nobody)' : shortAddress(payee)
}

function describePayees({ counterparties, sellers }: Policy): readonly Sentence[] {
  const { allow, deny = [], newPayeeCooldownSec } = counterparties ?? {}
  return [
    ...(allow === undefined
      ? []
      : allow.length === 0
        ? [sentence`It may send to ${'no address'}.`]
        : [sentence`It may send only to ${some(allow.map(namePolicyEntry))}.`]),
    ...(deny.length === 0 ? [] : [sentence`Never to ${some(deny.map(namePolicyEntry))}.`]),
    ...(newPayeeCooldownSec === undefined
      ? []
      : [sentence`A new payee waits ${formatLongSpan(newPayeeCooldownSec)} before the first payment.`]),
    ...(sellers?.allow === undefined
      ? []
      : sellers.allow.length === 0
        ? [sentence`It may buy from ${'no website'}.`]
        : [sentence`It may buy only from ${some(sellers.allow)}.`]),
    ...(sellers?.deny === undefined || sellers.deny.length === 0
      ? []
      : [sentence`Never from ${some(sellers.deny)}.`]),
    ...describeRecord(sellers),
  ]
}

function describeRecord(sellers: Policy['sellers']): readonly Sentence[] {
  const { minDelivered, unknown } = sellers ?? {}
  const fewer = minDelivered === undefined ? 'nothing' : 'less'
  return [
    ...(minDelivered === undefined
      ? []
      : [
          sentence`A seller must have delivered ${formatPercent(minDelivered.ratio)} of its last ${formatNumber(minDelivered.of)} paid purchases.`,
        ]),
    ...(unknown === 'ask'
      ? [sentence`It ${'asks you'} about sellers of which ${fewer} is known.`]
      : unknown === 'deny'
        ? [sentence`It buys ${'nothing'} from sellers of which ${fewer} is known.`]
        : []),
  ]
}

function formatPercent(ratio: number): string {
  return `${Number((ratio * 100).toFixed(1))} %`
}

function describeMerchants({ mcc, symbols }: Policy): readonly Sentence[] {
  return [
    ...(mcc?.allow === undefined
      ? []
      : mcc.allow.length === 0
        ? [sentence`By card, it may pay in ${'no shop'}.`]
        : [sentence`By card, only at ${some(mcc.allow.map(nameShop))}.`]),
    ...(mcc?.deny === undefined || mcc.deny.length === 0
      ? []
      : [sentence`Never by card: ${some(mcc.deny.map(nameShop))}.`]),
    ...(symbols?.allow === undefined
      ? []
      : symbols.allow.length === 0
        ? [sentence`It may trade ${'nothing'}.`]
        : [sentence`It may trade only ${some(symbols.allow)}.`]),
    ...(symbols?.deny === undefined || symbols.deny.length === 0
      ? []
      : [sentence`It never trades ${some(symbols.deny)}.`]),
  ]
}

function describeTimes({ timeWindows, notBefore, expiresAt }: Policy): readonly Sentence[] {
  const windows = timeWindows?.map(
    ({ days: open, start, end, tz }) => `${nameDays(open)}, ${start} to ${end} (${tz})`,
  )
  return [
    ...(windows === undefined
      ? []
      : [
          windows.length === 0
            ? sentence`It may spend ${'at no time'}.`
            : sentence`Only ${list(windows, 'or')}.`,
        ]),
    ...(notBefore === undefined ? [] : [sentence`Not before ${formatLongDay(notBefore)}.`]),
    ...(expiresAt === undefined ? [] : [sentence`Until ${formatLongDay(expiresAt)}.`]),
  ]
}

/** A violation as decisions and approvals carry it. Old rows may lack members. */
export type BrokenRule = Pick<Violation, 'rule'> & Partial<Violation>

/** `$64.00 is above $10.00 a payment`: a violated rule with its numbers, in lower case, without a full stop. */
export function describeViolation(violation: BrokenRule): string {
  const { rule } = violation
  const limit = violation.limit ?? null
  const requested = violation.requested ?? null
  const remaining = violation.remaining ?? null
  const template = ruleWords[rule]
  if (template === undefined) return `it breaks the rule “${rule.replaceAll('_', ' ')}”`
  return template({ limit, requested, remaining, resetsAt: violation.resetsAt ?? null })
}

interface RuleFacts {
  readonly limit: string | null
  readonly requested: string | null
  readonly remaining: string | null
  readonly resetsAt: string | null
}

const ruleWords: Readonly<Record<string, (facts: RuleFacts) => string>> = {
  per_transaction: ({ limit, requested }) => `${it(requested)} is above ${usd(limit)} a payment`,
  daily_budget: (facts) => overBudget(facts, 'today'),
  weekly_budget: (facts) => overBudget(facts, 'this week'),
  monthly_budget: (facts) => overBudget(facts, 'this month'),
  total_budget: (facts) => overBudget(facts, 'in total'),
  owner_budget: (facts) => `${overBudget(facts, '')} for all agents together`.replace('  ', ' '),
  daily_count: ({ limit }) => `it has already made its ${number(limit)} payments today`,
  weekly_count: ({ limit }) => `it has already made its ${number(limit)} payments this week`,
  monthly_count: ({ limit }) => `it has already made its ${number(limit)} payments this month`,
  total_count: ({ limit }) => `it has already made all of its ${number(limit)} payments`,
  category: ({ requested }) =>
    requested === null
      ? 'this way of paying is not allowed'
      : `${nameCategory(requested).toLowerCase()} are not among its ways of paying`,
  asset: ({ requested }) => `it may not spend ${plain(requested, 'this money')}`,
  chain: ({ requested }) =>
    `it may not pay on ${requested === null ? 'this chain' : plainText(nameChain(requested))}`,
  counterparty: () => 'this payee is not allowed',
  seller: () => 'this seller is not allowed',
  payee_changed: () => 'the seller asks to be paid at another address than before',
  price_changed: () => 'the seller’s price is higher than before',
  seller_record: ({ limit, requested }) =>
    requested === null || !/^[01](\.\d+)?$/.test(`${requested}`) || limit === null
      ? 'too little is known of this seller'
      : `this seller delivered only ${formatPercent(Number(requested))} of what was paid, less than ${formatPercent(Number(limit))}`,
  new_payee_cooldown: ({ limit }) =>
    limit === null || !/^\d+$/.test(limit)
      ? 'a new payee has to wait before the first payment'
      : `a new payee waits ${formatLongSpan(Number(limit))} before the first payment`,
  repeat_limit: ({ limit }) =>
    limit === null || !/^\d+$/.test(limit)
      ? 'it made the same payment too often'
      : `it had made the same payment ${countTimes(Number(limit))} just before`,
  mcc: ({ requested }) =>
    requested === null
      ? 'a shop of an unknown kind is not allowed'
      : `${plainText(nameShop(requested))} is a kind of shop you ruled out`,
  symbol: ({ requested }) => `it may not trade ${plain(requested, 'this')}`,
  time_window: () => 'it is outside the hours you set',
  not_yet_valid: ({ limit }) =>
    `the policy begins ${limit === null ? 'later' : `on ${formatLongDay(limit)}`}`,
  expired: ({ limit }) => `the policy ended${limit === null ? '' : ` on ${formatLongDay(limit)}`}`,
  paused: () => 'the agent is stopped',
  aml_screening: () => 'the payee did not pass screening',
  velocity: () => 'too much left the account in a short time',
  structuring: () => 'it looks like one large payment in parts',
}

function overBudget({ requested, remaining, limit }: RuleFacts, span: string): string {
  const left = remaining === null ? `the budget of ${usd(limit)}` : `the ${usd(remaining)} left`
  return `${it(requested)} is above ${left} ${span}`.trim()
}

function it(requested: string | null): string {
  return requested === null ? 'it' : usd(requested)
}

function plain(text: string | null, otherwise: string): string {
  return text === null ? otherwise : plainText(text)
}

function number(text: string | null): string {
  return text === null ? '' : formatNumber(text)
}

function formatNumber(text: string | number): string {
  return formatDecimal(String(text)).replace(/\D00$/, '')
}

function usd(amount: string | number | null): string {
  return amount === null ? 'the limit' : formatUsdExactly(String(amount))
}

/** One rule of a decision, for the columns of a table. @property used null: the rule counts nothing. */
export interface RuleWords {
  readonly name: string
  readonly requested: string
  readonly used: string | null
  readonly limit: string
}

type RuleRow = readonly [name: string, words: (text: string) => string]

const usdRow = (name: string): RuleRow => [name, formatUsdExactly]
const numberRow = (name: string): RuleRow => [name, formatNumber]

const ruleRows: Readonly<Record<string, RuleRow>> = {
  per_transaction: usdRow('At a time'),
  daily_budget: usdRow('A day'),
  weekly_budget: usdRow('A week'),
  monthly_budget: usdRow('A month'),
  total_budget: usdRow('In total'),
  owner_budget: usdRow('All agents together'),
  daily_count: numberRow('Payments a day'),
  weekly_count: numberRow('Payments a week'),
  monthly_count: numberRow('Payments a month'),
  total_count: numberRow('Payments in total'),
  category: ['Pays by', nameCategory],
  asset: ['Spends', plainText],
  chain: ['Pays on', nameChain],
  counterparty: ['Payee', namePayee],
  seller: ['Seller', namePayee],
  payee_changed: ['Address as before', shortAddress],
  // Prices are smallest units of any asset: the numbers alone would mislead.
  price_changed: ['Price as before', () => ''],
  seller_record: ['Delivered', (text) => (/^[01](\.\d+)?$/.test(text) ? formatPercent(Number(text)) : '')],
  new_payee_cooldown: ['New payee waits', shortAddress],
  repeat_limit: numberRow('The same again'),
  mcc: ['Kind of shop', nameShop],
  symbol: ['Trades', plainText],
  time_window: ['Hours', plainText],
  not_yet_valid: ['Begins', formatLongDay],
  expired: ['Ends', formatLongDay],
  paused: ['Stopped', plainText],
  aml_screening: ['Screening', plainText],
  velocity: ['Pace', plainText],
  structuring: ['Payments in parts', plainText],
  approval: usdRow('Ask me above'),
}

/** `daily_budget` → `A day`. */
export function nameRule(rule: string): string {
  return ruleRows[rule]?.[0] ?? capital(plainText(rule.replaceAll('_', ' ')))
}

/** Names and numbers of an evaluated rule. */
export function describeRule({ rule, limit, used, requested }: Omit<ExplainedRule, 'result'>): RuleWords {
  const [, words] = ruleRows[rule] ?? ['', plainText]
  return {
    name: nameRule(rule),
    requested: requested === null ? '' : plainText(words(requested)),
    used: used === null ? null : words(used),
    limit: limit === null ? '' : plainText(describeLimit(rule, limit, words)),
  }
}

function describeLimit(rule: string, limit: string, words: (text: string) => string): string {
  if (rule === 'approval') return `above ${words(limit)}`
  if (rule === 'new_payee_cooldown') return /^\d+$/.test(limit) ? formatLongSpan(Number(limit)) : limit
  if (/budget|count|per_transaction|repeat/.test(rule)) return `of ${words(limit)}`
  if (rule === 'not_yet_valid' || rule === 'expired') return words(limit)
  const [isDenied, names] = limit.startsWith('not ') ? [true, limit.slice(4)] : [false, limit]
  const shown = some(names.split(',').map(words))
  if (isDenied) return `not ${shown}`
  return names === '' ? 'none' : shown
}

/** Verdict of a decision in words, with every violated rule: `Denied: $64.00 is above $10.00 a payment`. */
export function describeVerdict(verdict: string, violations: readonly BrokenRule[]): string {
  const rules = list(withoutRepeats(violations.map(describeViolation)))
  if (verdict === 'allow') return rules === '' ? 'Allowed' : `Allowed once by you, although ${rules}`
  if (verdict === 'approval_required')
    return rules === '' ? 'Asked you: above what it may pay without your yes' : `Asked you: ${rules}`
  if (verdict === 'insufficient_funds') return 'Denied: the account had too little money'
  return rules === '' ? 'Denied' : `Denied: ${rules}`
}

/** `$64.00 is above $10.00 a payment`, `above the $18.50 left today`: the subject is said once. */
function withoutRepeats(rules: readonly string[]): readonly string[] {
  const [firstRule] = rules
  const subject = firstRule === undefined ? undefined : /^\S+ is (?=above )/.exec(firstRule)?.[0]
  return rules.map((rule, position) =>
    position > 0 && subject !== undefined && rule.startsWith(subject) ? rule.slice(subject.length) : rule,
  )
}

/** `1 hour`, `90 minutes`, `3 days`. @param seconds of a setting, which is most often a whole number of something */
export function formatLongSpan(seconds: number): string {
  const units = [
    [86_400, 'day'],
    [3600, 'hour'],
    [60, 'minute'],
  ] as const
  for (const [size, name] of units)
    if (seconds >= size && seconds % size === 0) {
      const many = seconds / size
      return `${many} ${name}${many === 1 ? '' : 's'}`
    }
  return formatSpan(seconds)
}

function formatLongDay(iso: string): string {
  const at = new Date(iso)
  if (Number.isNaN(at.getTime())) return plainText(iso)
  return at.toLocaleString(undefined, { ...digits, dateStyle: 'medium', timeStyle: 'short' })
}

const seeing = {
  'wallets:read': 'balances',
  'banking:read': 'bank accounts',
  'cards:read': 'cards',
  'investing:read': 'investments',
  'swaps:quote': 'prices of swaps',
  'requests:read': 'its own requests for money',
  'events:read': 'its own events',
}

const changing = {
  'agents:delegate': 'share its budget with other agents',
  'banking:write': 'open bank accounts',
  'cards:write': 'issue and set cards',
  'compliance:write': 'submit Travel Rule data',
  'requests:create': 'ask others for money',
}

const moving = {
  'wallets:transfer': 'transfers',
  'swaps:execute': 'swaps',
  'purchases:pay': 'purchases',
  'cards:pay': 'cards for one purchase',
  'fx:pay': 'currency quotes',
  'investing:trade': 'orders',
  'banking:pay': 'payouts to banks',
}

/** Describes what a key's scopes let it see, change and move. */
export function describeScopes(scopes: readonly string[]): {
  readonly see: string
  readonly change: string
  readonly move: string
} {
  const pick = (words: Readonly<Record<string, string>>) =>
    capital(list(Object.keys(words).flatMap((scope) => (scopes.includes(scope) ? [words[scope] ?? ''] : []))))
  return { see: pick(seeing), change: pick(changing), move: pick(moving) }
}

/** Each scope's permission, as a verb with its object. */
const scopePhrases: Readonly<Record<string, string>> = {
  'agents:delegate': 'share its budget with other agents',
  'wallets:read': 'see balances',
  'banking:read': 'see bank accounts',
  'cards:read': 'see cards',
  'investing:read': 'see investments',
  'swaps:quote': 'see prices of swaps',
  'swaps:execute': 'swap stablecoins',
  'events:read': 'see its own events',
  'requests:create': 'ask others for money',
  'requests:read': 'see its own requests for money',
  'banking:write': 'open bank accounts',
  'cards:write': 'issue and set cards',
  'compliance:write': 'submit Travel Rule data',
  'wallets:transfer': 'send transfers',
  'purchases:pay': 'make purchases',
  'cards:pay': 'issue cards for one purchase',
  'fx:pay': 'buy currency quotes',
  'investing:trade': 'place orders',
  'banking:pay': 'pay out to banks',
}

/** `wallets:transfer` → `send transfers`. */
export function describeScope(scope: string): string {
  return scopePhrases[scope] ?? scope
}

/** Scopes by what they let a key do. */
export const scopeGroups = [
  { title: 'See', scopes: Object.keys(seeing) },
  { title: 'Change', scopes: Object.keys(changing) },
  { title: 'Move', scopes: Object.keys(moving) },
] as const

/** Categories of the policy that a scope spends by. It needs one of them. */
const spendingScopes: Readonly<Record<string, readonly string[]>> = {
  'wallets:transfer': ['transfer', 'gasless'],
  'cards:write': ['card'],
  'cards:pay': ['card'],
  'swaps:execute': ['swap'],
  'purchases:pay': ['x402'],
  'fx:pay': ['x402'],
  'investing:trade': ['invest'],
  'banking:pay': ['payout'],
}

/** True for a scope that a key can have only with a policy. */
export function isSpending(scope: string): boolean {
  return spendingScopes[scope] !== undefined
}

/** Picks the categories that scopes can spend by; all, if they can spend by none. */
export function pickSpendable<Category extends string>(
  categories: readonly Category[],
  scopes: readonly string[],
): readonly Category[] {
  const spends = (scope: string, category: string) => spendingScopes[scope]?.includes(category) === true
  const picked = categories.filter(
    (category) =>
      scopes.some((scope) => spends(scope, category)) ||
      !Object.keys(spendingScopes).some((scope) => spends(scope, category)),
  )
  return picked.length === 0 ? categories : picked
}

/** Describes the scopes whose every spend a policy denies; empty: none. */
export function describeDenied(scopes: readonly string[], categories: readonly string[]): string {
  return list(
    scopes
      .filter((scope) => spendingScopes[scope]?.some((one) => categories.includes(one)) === false)
      .map(describeScope),
    'or',
  )
}

/** More scopes than these are counted. */
const MAX_NAMED = 2

/** Describes a change of scopes for its button, such as `Grant: send transfers`; empty: none. */
export function describeScopeChange(granted: readonly string[], taken: readonly string[]): string {
  const name = (verb: string, scopes: readonly string[]) =>
    scopes.length > MAX_NAMED
      ? [`${verb} ${scopes.length}`]
      : scopes.length === 0
        ? []
        : [`${verb}: ${list(scopes.map(describeScope))}`]
  return [...name('Grant', granted), ...name('Take away', taken)].join(' · ')
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** Why a call asks although nothing denies it. @param policy as the API answers it; null: not known */
export function describeAskReason(policy: Readonly<Record<string, unknown>> | null): string {
  const approval = policy?.approval
  if (typeof approval !== 'object' || approval === null || !('above' in approval))
    return 'You want to see it first'
  return `You want to see what is above ${formatUsdExactly(String(approval.above))}`
}

/** How a key connects, in words. */
export function nameConnection(connection: string): string {
  const names: Readonly<Record<string, string>> = {
    oauth: 'By OAuth',
    signed: 'Signs with its own key',
    api_key: 'API key',
  }
  return names[connection] ?? connection
}
