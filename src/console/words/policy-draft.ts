/** A policy while it is edited: what stands in the fields, what is wrong with it, and the policy that it makes. */
import type { Policy, TimeWindow } from '../../client/operations.ts'
import { compareDecimals, formatUsd } from './money.ts'

/** Texts of the fields. An empty amount or count: none. Lists are texts separated by commas, spaces or lines; null: any. */
export interface PolicyDraft {
  readonly perTransaction: string
  readonly daily: string
  readonly weekly: string
  readonly monthly: string
  /** Of the key's life. */
  readonly total: string
  readonly dailyCount: string
  readonly weeklyCount: string
  readonly monthlyCount: string
  readonly totalCount: string
  /** Equal payments within {@link repeatSpan}; empty: no limit. */
  readonly repeatCount: string
  /** Seconds. */
  readonly repeatSpan: string
  readonly categories: readonly string[]
  readonly assets: readonly string[] | null
  readonly chains: readonly string[] | null
  readonly payees: string | null
  readonly payeesNever: string
  /** Seconds. */
  readonly cooldown: string
  readonly sellers: string | null
  readonly sellersNever: string
  /** Percent of the latest {@link recordOf} purchases that a seller must have delivered; empty: any. */
  readonly recordPercent: string
  readonly recordOf: string
  /** What is done with sellers of which less is known. */
  readonly unknownSellers: 'allow' | 'ask' | 'deny'
  readonly shops: string | null
  readonly shopsNever: string
  readonly symbols: string | null
  readonly symbolsNever: string
  readonly windows: readonly TimeWindow[] | null
  readonly above: string
  /** Seconds. */
  readonly ttl: string
  /** `YYYY-MM-DDTHH:MM` in the reader's zone; empty: none. */
  readonly from: string
  readonly until: string
}

export type DraftField = keyof PolicyDraft

export type DraftProblems = Readonly<Partial<Record<DraftField, string>>>

/** Limits that a draft can start from; the same as on the page where an agent connects. Amounts in USD. */
export const presets = [
  {
    name: 'careful',
    title: 'Careful',
    perTransaction: '5',
    daily: '20',
    weekly: '60',
    monthly: '150',
    above: '2',
  },
  {
    name: 'everyday',
    title: 'Everyday',
    perTransaction: '50',
    daily: '200',
    weekly: '600',
    monthly: '1500',
    above: '25',
  },
  {
    name: 'generous',
    title: 'Generous',
    perTransaction: '500',
    daily: '1000',
    weekly: '3000',
    monthly: '7500',
    above: '',
  },
] as const

const HOUR_SEC = '3600'

/** Equal payments that a preset allows, within ten minutes: more of them are a loop. */
const PRESET_REPEATS = '5'
const REPEAT_SEC = '600'

/** Purchases by which a seller is judged, unless the owner says how many. */
const RECORD_OF = '20'

/** A draft that denies everything until it is filled in. */
export const emptyDraft: PolicyDraft = {
  perTransaction: '',
  daily: '',
  weekly: '',
  monthly: '',
  total: '',
  dailyCount: '',
  weeklyCount: '',
  monthlyCount: '',
  totalCount: '',
  repeatCount: '',
  repeatSpan: REPEAT_SEC,
  categories: [],
  assets: null,
  chains: null,
  payees: null,
  payeesNever: '',
  cooldown: '',
  sellers: null,
  sellersNever: '',
  recordPercent: '',
  recordOf: RECORD_OF,
  unknownSellers: 'allow',
  shops: null,
  shopsNever: '',
  symbols: null,
  symbolsNever: '',
  windows: null,
  above: '',
  ttl: HOUR_SEC,
  from: '',
  until: '',
}

/** The draft of a preset: it may send and buy. */
export function draftPreset({
  perTransaction,
  daily,
  weekly,
  monthly,
  above,
}: (typeof presets)[number]): PolicyDraft {
  return {
    ...emptyDraft,
    perTransaction,
    daily,
    weekly,
    monthly,
    above,
    repeatCount: PRESET_REPEATS,
    categories: ['transfer', 'gasless', 'x402'],
  }
}

export function toDraft(policy: Policy): PolicyDraft {
  const { counterparties, sellers, mcc, symbols, approval } = policy
  return {
    perTransaction: String(policy.perTransaction.max),
    daily: String(policy.dailyBudget.max),
    weekly: String(policy.weeklyBudget?.max ?? ''),
    monthly: String(policy.monthlyBudget?.max ?? ''),
    total: String(policy.totalBudget?.max ?? ''),
    dailyCount: String(policy.dailyBudget.maxCount ?? ''),
    weeklyCount: String(policy.weeklyBudget?.maxCount ?? ''),
    monthlyCount: String(policy.monthlyBudget?.maxCount ?? ''),
    totalCount: String(policy.totalBudget?.maxCount ?? ''),
    repeatCount: String(policy.repeatLimit?.count ?? ''),
    repeatSpan: String(policy.repeatLimit?.perSec ?? REPEAT_SEC),
    categories: policy.categories.allow,
    assets: policy.assets ?? null,
    chains: policy.chains ?? null,
    payees: counterparties?.allow?.join('\n') ?? null,
    payeesNever: counterparties?.deny?.join('\n') ?? '',
    cooldown: String(counterparties?.newPayeeCooldownSec ?? ''),
    sellers: sellers?.allow?.join('\n') ?? null,
    sellersNever: sellers?.deny?.join('\n') ?? '',
    recordPercent: toPercent(sellers?.minDelivered?.ratio),
    recordOf: String(sellers?.minDelivered?.of ?? RECORD_OF),
    unknownSellers: sellers?.unknown ?? 'allow',
    shops: mcc?.allow?.join(', ') ?? null,
    shopsNever: mcc?.deny?.join(', ') ?? '',
    symbols: symbols?.allow?.join(', ') ?? null,
    symbolsNever: symbols?.deny?.join(', ') ?? '',
    windows: policy.timeWindows ?? null,
    above: String(approval?.above ?? ''),
    ttl: String(approval?.ttlSec ?? 86_400),
    from: localMoment(policy.notBefore),
    until: localMoment(policy.expiresAt),
  }
}

/** Problems of a draft by field, in words for people. Empty if the draft is a valid policy. */
export function findProblems(draft: PolicyDraft): DraftProblems {
  return Object.fromEntries(
    [
      ...amountProblems(draft),
      ...countProblems(draft),
      ...repeatProblems(draft),
      ...recordProblems(draft),
      ...listProblems(draft),
      ...timeProblems(draft),
    ].filter(([, problem]) => problem !== ''),
  )
}

type Problem = readonly [field: DraftField, words: string]

const periods = [
  ['daily', 'a day', 'the day'],
  ['weekly', 'a week', 'the week'],
  ['monthly', 'a month', 'the month'],
  ['total', 'in total', 'the total'],
] as const

function amountProblems(draft: PolicyDraft): readonly Problem[] {
  const { perTransaction, above } = draft
  const budgets = periods.map(([field]): Problem => {
    const amount = draft[field]
    if (amount === '') return [field, field === 'daily' ? 'Say how much a day.' : '']
    const longer = periods.slice(periods.findIndex(([one]) => one === field) + 1)
    return [field, wrongAmount(amount) || moreThan(draft, amount, longer)]
  })
  const each =
    perTransaction === ''
      ? 'Say how much at a time.'
      : wrongAmount(perTransaction) || moreThan(draft, perTransaction, periods)
  return [['perTransaction', each], ...budgets, ['above', above === '' ? '' : wrongAmount(above)]]
}

/** Finds the problem of an amount that a longer period does not allow; empty: none. */
function moreThan(draft: PolicyDraft, amount: string, longer: readonly (typeof periods)[number][]): string {
  const smaller = longer.find(
    ([field]) => isAmount(draft[field]) && compareDecimals(amount, draft[field]) > 0,
  )
  if (smaller === undefined) return ''
  const [field, span, name] = smaller
  return `More than the ${formatUsd(draft[field])} ${span}. Lower it, or raise ${name}.`
}

function countProblems(draft: PolicyDraft): readonly Problem[] {
  const counts = [
    ['dailyCount', 'daily'],
    ['weeklyCount', 'weekly'],
    ['monthlyCount', 'monthly'],
    ['totalCount', 'total'],
  ] as const
  return counts.map(([field, budget]) => {
    const text = draft[field]
    if (text === '') return [field, '']
    if (!/^[1-9]\d{0,5}$|^1000000$/.test(text)) return [field, 'A whole number from 1 to 1,000,000.']
    return [field, draft[budget] === '' ? 'It needs an amount beside it.' : '']
  })
}

function repeatProblems({ repeatCount, repeatSpan }: PolicyDraft): readonly Problem[] {
  const isCount = repeatCount === '' || /^[1-9]\d{0,2}$|^1000$/.test(repeatCount)
  return [
    ['repeatCount', isCount ? '' : 'A whole number from 1 to 1,000.'],
    ['repeatSpan', isSpan(repeatSpan, 1, 2_592_000) ? '' : 'From 1 second to 30 days.'],
  ]
}

function recordProblems({ recordPercent, recordOf, unknownSellers, above }: PolicyDraft): readonly Problem[] {
  const isPercent = /^\d{1,3}(\.\d{1,4})?$/.test(recordPercent) && Number(recordPercent) > 0
  return [
    [
      'recordPercent',
      recordPercent === '' || (isPercent && Number(recordPercent) <= 100)
        ? ''
        : 'More than 0, up to 100 percent.',
    ],
    ['recordOf', /^([1-9]\d?|100)$/.test(recordOf) ? '' : 'From 1 to 100 purchases.'],
    [
      'unknownSellers',
      unknownSellers === 'ask' && above === '' ? 'It asks only if you say above which amount it asks.' : '',
    ],
  ]
}

const payee = [
  /^(0x[0-9a-f]{40}|rcp_[0-9a-z]{26}|contact:(?!.*contact:).+)$/i,
  'is no address (0x and 40 hex digits), and no contact:NAME on a line of its own',
] as const

const formats = {
  payees: payee,
  payeesNever: payee,
  sellers: [
    /^(https?:\/\/[^/?#@\\\s]+|\*\.[^/?#@:\\\s.]+(\.[^/?#@:\\\s.]+)+)$/i,
    'is no website such as https://api.example.com or *.example.com',
  ],
  sellersNever: [
    /^(https?:\/\/[^/?#@\\\s]+|\*\.[^/?#@:\\\s.]+(\.[^/?#@:\\\s.]+)+)$/i,
    'is no website such as https://api.example.com or *.example.com',
  ],
  shops: [/^\d{4}$/, 'is no merchant category: four digits'],
  shopsNever: [/^\d{4}$/, 'is no merchant category: four digits'],
  symbols: [/^[A-Z0-9.]{1,12}$/i, 'is no ticker'],
  symbolsNever: [/^[A-Z0-9.]{1,12}$/i, 'is no ticker'],
} as const

function listProblems(draft: PolicyDraft): readonly Problem[] {
  const fields = Object.entries(formats).map(([name, [format, words]]): Problem => {
    const field = name as keyof typeof formats // The keys of a literal object are its own names.
    const split = format === payee[0] ? splitPayees : splitItems
    const wrong = split(draft[field] ?? '').find((item) => !format.test(item))
    return [field, wrong === undefined ? '' : `“${wrong.slice(0, 60)}” ${words}.`]
  })
  const { categories } = draft
  return [
    ...fields,
    ['categories', categories.length === 0 ? 'Tick at least one, or it cannot pay at all.' : ''],
  ]
}

function timeProblems({ from, until, windows, cooldown, ttl }: PolicyDraft): readonly Problem[] {
  const incomplete = windows?.some(
    ({ days, start, end }) => days.length === 0 || !/^\d\d:\d\d$/.test(start) || !/^\d\d:\d\d$/.test(end),
  )
  return [
    ['windows', incomplete === true ? 'Each window needs a day, a beginning and an end.' : ''],
    [
      'until',
      from !== '' && until !== '' && Date.parse(from) >= Date.parse(until) ? 'It ends before it begins.' : '',
    ],
    ['cooldown', cooldown === '' || isSpan(cooldown, 1, 2_592_000) ? '' : 'From 1 second to 30 days.'],
    ['ttl', isSpan(ttl, 60, 604_800) ? '' : 'From 1 minute to 7 days.'],
  ]
}

function isSpan(text: string, min: number, max: number): boolean {
  return /^\d{1,7}$/.test(text) && Number(text) >= min && Number(text) <= max
}

function isAmount(text: string): boolean {
  return wrongAmount(text) === '' && text !== ''
}

function wrongAmount(text: string): string {
  if (!/^\d{1,12}(\.\d{1,6})?$/.test(text)) return 'An amount such as 12.50.'
  return compareDecimals(text, '0') === 0 ? 'More than nothing.' : ''
}

function splitItems(text: string): readonly string[] {
  return text.split(/[\s,;]+/).filter((item) => item !== '')
}

/** As {@link splitItems}; a contact has a line of its own, because its name may have spaces and commas. */
function splitPayees(text: string): readonly string[] {
  return text.split('\n').flatMap((line) => {
    const item = line.trim()
    return /^contact:/i.test(item) ? [item.replace(/^contact:/i, 'contact:')] : splitItems(item)
  })
}

/**
 * The policy of a draft without problems.
 * @param base policy that was edited: members unknown to this editor are kept
 */
export function toPolicy(draft: PolicyDraft, base: Policy | null = null): Policy {
  const { payees, sellers, shops, symbols } = draft
  const wanted = {
    ...base,
    currency: 'USD',
    perTransaction: { max: draft.perTransaction },
    dailyBudget: toBudget(draft.daily, draft.dailyCount),
    weeklyBudget: draft.weekly === '' ? undefined : toBudget(draft.weekly, draft.weeklyCount),
    monthlyBudget: draft.monthly === '' ? undefined : toBudget(draft.monthly, draft.monthlyCount),
    totalBudget: draft.total === '' ? undefined : toBudget(draft.total, draft.totalCount),
    repeatLimit:
      draft.repeatCount === ''
        ? undefined
        : { count: Number(draft.repeatCount), perSec: Number(draft.repeatSpan) },
    categories: { allow: draft.categories },
    counterparties: omitEmpty({
      ...toLists(payees, draft.payeesNever, splitPayees),
      newPayeeCooldownSec: draft.cooldown === '' ? undefined : Number(draft.cooldown),
    }),
    sellers: omitEmpty({
      ...toLists(sellers, draft.sellersNever),
      minDelivered: toRecord(draft, base),
      unknown:
        draft.unknownSellers === (base?.sellers?.unknown ?? 'allow')
          ? base?.sellers?.unknown
          : draft.unknownSellers,
    }),
    assets: draft.assets ?? undefined,
    chains: draft.chains ?? undefined,
    mcc: omitEmpty(toLists(shops, draft.shopsNever)),
    symbols: omitEmpty(toLists(symbols, draft.symbolsNever)),
    timeWindows: draft.windows ?? undefined,
    approval: draft.above === '' ? undefined : { above: draft.above, ttlSec: Number(draft.ttl) },
    notBefore: toMoment(draft.from, base?.notBefore),
    expiresAt: toMoment(draft.until, base?.expiresAt),
  }
  // The gateway checks every member again. Categories, assets and chains come from its own lists.
  return omitEmpty(wanted) as Policy
}

/** The spend policy of a key, as the API answers it. */
export function readPolicy(policy: Readonly<Record<string, unknown>> | null): Policy | null {
  // The answer's schema leaves the policy open; the gateway stores none but checked ones.
  return policy as Policy | null
}

function toPercent(ratio: number | undefined): string {
  return ratio === undefined ? '' : String(Number((ratio * 100).toFixed(4)))
}

/** A ratio that was not touched stays as it is, so that saving changes nothing by itself. */
function toRecord({ recordPercent, recordOf }: PolicyDraft, base: Policy | null) {
  if (recordPercent === '') return undefined
  const before = base?.sellers?.minDelivered?.ratio
  const ratio =
    before !== undefined && toPercent(before) === recordPercent ? before : Number(recordPercent) / 100
  return { of: Number(recordOf), ratio }
}

function toBudget(max: string, maxCount: string) {
  return { max, ...(maxCount === '' ? {} : { maxCount: Number(maxCount) }) }
}

function toLists(allow: string | null, deny: string, split = splitItems) {
  const denied = split(deny)
  return {
    allow: allow === null ? undefined : split(allow),
    deny: denied.length === 0 ? undefined : denied,
  }
}

/** Without the members that are undefined; undefined if none is left. */
function omitEmpty(members: Readonly<Record<string, unknown>>): Record<string, unknown> | undefined {
  const known = Object.entries(members).filter(([, value]) => value !== undefined)
  return known.length === 0 ? undefined : Object.fromEntries(known)
}

/** A field has minutes only: one that was not touched keeps its seconds, so that saving changes nothing by itself. */
function toMoment(text: string, before: string | undefined): string | undefined {
  if (text === '') return undefined
  return text === localMoment(before) ? before : new Date(text).toISOString()
}

function localMoment(iso: string | undefined): string {
  if (iso === undefined) return ''
  const at = new Date(iso)
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** Scopes that a key needs to spend in the draft's ways, and to see what it spends. */
export function deriveScopes(categories: readonly string[]) {
  const has = (category: string) => categories.includes(category)
  return [
    'wallets:read' as const,
    'events:read' as const,
    ...(has('transfer') || has('gasless') ? (['wallets:transfer'] as const) : []),
    ...(has('card') ? (['cards:read', 'cards:write', 'cards:pay'] as const) : []),
    ...(has('x402') ? (['purchases:pay', 'fx:pay'] as const) : []),
    ...(has('invest') ? (['investing:read', 'investing:trade'] as const) : []),
    ...(has('swap') ? (['swaps:quote', 'swaps:execute'] as const) : []),
    ...(has('payout') ? (['banking:read', 'banking:pay'] as const) : []),
  ]
}
