/**
 * One sentence for each operation that an agent may ask for, made from the call's facts only. Text of others never
 * becomes part of it; names of payees stand in {@link CallFacts.party} and are shown isolated.
 */
import { formatDecimal } from './money.ts'
import { plainText, shortText } from './plain-text.ts'

/** @property verb such as `send`. @property detail anything else that matters, in words. */
export interface CallFacts {
  readonly verb: string
  readonly amount: string | null
  readonly asset: string | null
  /** Word before the party, such as `to`. */
  readonly preposition: string
  readonly party: string | null
  readonly partyKind: 'address' | 'website' | 'merchant' | 'ticker' | 'recipient' | 'none'
  readonly detail: string | null
}

type Input = Readonly<Record<string, unknown>>

/** Decimals of the stablecoins that move in smallest units. */
const TOKEN_DECIMALS = 6

const change = (verb: string): CallFacts => ({
  verb,
  amount: null,
  asset: null,
  preposition: '',
  party: null,
  partyKind: 'none',
  detail: null,
})

const templates: Readonly<Record<string, (input: Input) => CallFacts>> = {
  'wallets.transfer': (input) => ({
    verb: 'send',
    amount: text(input, 'amount'),
    asset: text(input, 'token') ?? 'USDC',
    preposition: 'to',
    party: text(input, 'destination'),
    partyKind: 'address',
    detail: null,
  }),
  'transfers.gasless': (input) => {
    const signed = record(input.authorization) ?? record(input.permit) ?? {}
    return {
      verb: 'relay a signed payment of',
      amount: unitsToDecimal(text(signed, 'value')),
      asset: text(input, 'token'),
      preposition: 'to',
      party: text(signed, 'to') ?? text(input, 'to') ?? text(signed, 'owner'),
      partyKind: 'address',
      detail: 'Another payer’s money moves, not yours. The amount counts under the policy.',
    }
  },
  'purchases.buy': (input) => ({
    verb: 'buy for at most',
    amount: text(input, 'maxAmount'),
    asset: text(input, 'asset') ?? 'USDC',
    preposition: 'from',
    party: extractHost(text(input, 'url')),
    partyKind: 'website',
    detail: text(input, 'url'),
  }),
  'x402.fx': (input) => change(`buy a currency quote${describePair(input)}`),
  'investing.order': (input) => ({
    verb: text(input, 'side') === 'sell' ? 'sell' : 'invest',
    amount: text(input, 'notional') ?? text(input, 'qty'),
    asset: input.notional === undefined ? 'shares' : 'USD',
    preposition: text(input, 'side') === 'sell' ? 'of' : 'in',
    party: text(input, 'symbol'),
    partyKind: 'ticker',
    detail: describeLimit(input),
  }),
  'cards.authorize': (input) => ({
    verb: 'pay by card',
    amount: text(input, 'amount'),
    asset: text(input, 'currency') ?? 'USD',
    preposition: 'at',
    party: text(input, 'merchant'),
    partyKind: 'merchant',
    detail: null,
  }),
  'swaps.execute': (input) => ({
    verb: 'swap',
    amount: text(record(input.sell) ?? {}, 'amount'),
    asset: text(record(input.sell) ?? {}, 'token'),
    preposition: 'to',
    party: text(record(input.buy) ?? {}, 'token') ?? 'the quoted token',
    partyKind: 'ticker',
    detail: describeLeast(input),
  }),
  'cards.issue': describeCard,
  'cards.update': () => change('change a card'),
  'agents.policy': () => change('get another policy'),
  'schedules.create': describeSchedule,
  'schedules.update': () => change('go on with a paused schedule'),
  'schedules.resume': () => change('go on with a schedule after three runs failed'),
  'agents.resume': () => change('go on after the same payment again and again'),
  'banking.payouts.create': (input) => ({
    verb: 'pay out',
    amount: text(input, 'amount'),
    asset: text(input, 'asset') ?? 'USD',
    preposition: 'to bank recipient',
    party: text(input, 'recipientId'),
    partyKind: 'recipient',
    detail: describeArrival(input),
  }),
}

/** The facts of a call in words. An operation without a template is named as it is. */
export function describeCall(operation: string, input: Input): CallFacts {
  const template = templates[operation]
  if (template !== undefined) return template(input)
  return {
    verb: `run the operation ${plainText(operation)}`,
    amount: text(input, 'amount'),
    asset: text(input, 'asset'),
    preposition: '',
    party: null,
    partyKind: 'none',
    detail: null,
  }
}

/** `send 3.50 USDC`: the beginning of the sentence, in text. */
export function phraseCall({ verb, amount, asset }: CallFacts, format: (amount: string) => string): string {
  return amount === null ? verb : `${verb} ${format(amount)} ${asset ?? ''}`.trim()
}

/** `Send 3.50 USDC to 0x0000…dEaD`: the whole sentence in text, for titles and readers of the screen. */
export function writeCallSentence(facts: CallFacts): string {
  const { party, partyKind, preposition } = facts
  const phrase = phraseCall(facts, formatDecimal)
  if (party === null) return phrase
  const name =
    partyKind === 'address' && party.length === 42
      ? `${party.slice(0, 6)}…${party.slice(-4)}`
      : shortText(party)
  return [phrase, preposition, name].filter((words) => words !== '').join(' ')
}

/** A member of a call as it would run. @property isGiven false: the operation's own default. */
export interface CallMember {
  readonly label: string
  readonly value: string
  readonly isGiven: boolean
}

/** Labels of members, by their paths. */
const labels: Readonly<Record<string, string>> = {
  amount: 'Amount',
  maxAmount: 'At most',
  token: 'Currency',
  asset: 'Currency',
  destination: 'To',
  to: 'To',
  from: 'From',
  chain: 'Chain',
  safeAddress: 'From wallet',
  signature: 'Signature',
  intentId: 'Signed intent',
  url: 'Address',
  method: 'Method',
  body: 'Sent with it',
  purpose: 'Purpose, in its own words',
  reason: 'Reason, in its own words',
  memo: 'Memo, in its own words',
  symbol: 'Ticker',
  side: 'Direction',
  notional: 'Amount in USD',
  type: 'Kind of order',
  limitPrice: 'Limit price in USD',
  clientOrderId: 'Its own order number',
  recipientId: 'Recipient',
  recipientAmount: 'Arrives, in the recipient’s currency',
  quoteId: 'Quote',
  reference: 'Reference',
  idempotency_key: 'Its own call number',
}

/** Defaults of each operation, filled in by the gateway when the call leaves them out. */
const defaults: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'wallets.transfer': { token: 'USDC', chain: '' },
  'transfers.gasless': { chain: '' },
  'purchases.buy': { method: 'GET', asset: 'USDC' },
  'investing.order': { type: 'market' },
  'banking.payouts.create': { asset: 'USD' },
}

/**
 * Every member of a call as it would run, with the operation's defaults.
 * @param chain name of the deployment's own chain, for operations that run on it by default
 */
export function listMembers(operation: string, input: Input, chain: string): readonly CallMember[] {
  const given = flatten(input).map(([path, value]) => ({ label: labelMember(path), value, isGiven: true }))
  const missing = Object.entries(defaults[operation] ?? {})
    // A quote names its own asset.
    .filter(([name]) => input[name] === undefined && (name !== 'asset' || input.quoteId === undefined))
    .map(([name, value]) => ({
      label: labelMember(name),
      value: value === '' ? chain : value,
      isGiven: false,
    }))
  return [...given, ...missing].filter(({ value }) => value !== '')
}

function labelMember(path: string): string {
  const known = labels[path]
  if (known !== undefined) return known
  const words = plainText(path)
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .toLowerCase()
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** Members of members by their path: `authorization, to`. */
function flatten(value: unknown, path = ''): readonly (readonly [path: string, value: string])[] {
  if (typeof value !== 'object' || value === null) return [[path, plainText(String(value ?? 'none'))]]
  const members = Object.entries(value)
  if (members.length === 0) return [[path, 'nothing']]
  return members.flatMap(([name, member]) => {
    const own = Array.isArray(value) ? String(Number(name) + 1) : name
    return flatten(member, path === '' ? own : `${path}, ${own}`)
  })
}

/** Describes the amount of a payout that arrives, in the currency of its recipient, and the reference. */
function describeArrival(input: Input): string | null {
  const [arrives, reference] = [text(input, 'recipientAmount'), text(input, 'reference')]
  const words = arrives === null ? null : `${formatDecimal(arrives)} arrives in the currency of the account`
  return [words, reference].filter((one) => one !== null).join(' · ') || null
}

/** What is paid each time, and how often. */
function describeSchedule(input: Input): CallFacts {
  const facts = describeCall(text(input, 'operation') ?? '', record(input.input) ?? {})
  const every = record(input.every) ?? {}
  const rhythm = describeRhythm(text(every, 'unit') ?? '', {
    interval: Number(every.interval ?? 1),
    on: typeof every.on === 'number' ? every.on : null,
  })
  return { ...facts, verb: `again and again ${facts.verb}`, detail: `${rhythm}.` }
}

const weekdays = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']

/** `Every month on day 31`, `Every 2 weeks on Monday`. */
export function describeRhythm(
  unit: string,
  { interval, on }: { readonly interval: number; readonly on: number | null },
): string {
  const often = interval === 1 ? `Every ${unit}` : `Every ${interval} ${unit}s`
  if (on === null || unit === 'day') return often
  if (unit === 'week') return `${often} on ${weekdays[on - 1] ?? 'one day'}`
  return on === 31 ? `${often} on its last day` : `${often} on day ${on}`
}

/** A card for one purchase names its amount and, if it has one, its merchant. */
function describeCard(input: Input): CallFacts {
  const singleUse = record(input.singleUse)
  if (singleUse === null) return { ...change('issue a new card'), detail: text(input, 'nickname') }
  const merchant = record(singleUse.merchant) ?? {}
  const name = text(merchant, 'name')
  const isOpen = Object.keys(merchant).length === 0
  return {
    verb: 'issue a card for one purchase of',
    amount: text(singleUse, 'amount'),
    asset: 'USD',
    preposition: 'at',
    party: name,
    partyKind: name === null ? 'none' : 'merchant',
    detail: isOpen ? 'At any merchant.' : null,
  }
}

function describePair(input: Input): string {
  const [from, to] = [text(input, 'from'), text(input, 'to')]
  return from !== null && to !== null ? ` of ${from} in ${to}` : ''
}

function describeLeast(input: Input): string | null {
  const least = text(input, 'minReceived')
  if (least !== null) return `at least ${least} must arrive`
  return input.quoteId === undefined ? null : 'at least the minimum of its quote must arrive'
}

function text(input: Input, name: string): string | null {
  const value = input[name]
  if (typeof value === 'string' && value !== '') return plainText(value)
  return typeof value === 'number' ? String(value) : null
}

function record(value: unknown): Input | null {
  return typeof value === 'object' && value !== null ? (value as Input) : null
}

function extractHost(url: string | null): string | null {
  return url !== null && URL.canParse(url) ? new URL(url).host : url
}

function describeLimit(input: Input): string | null {
  const limit = text(input, 'limitPrice')
  return limit === null ? null : `Not at a worse price than $${limit} a share.`
}

function unitsToDecimal(units: string | null): string | null {
  if (units === null || !/^\d+$/.test(units)) return units
  const digits = units.padStart(TOKEN_DECIMALS + 1, '0')
  return `${digits.slice(0, -TOKEN_DECIMALS)}.${digits.slice(-TOKEN_DECIMALS)}`
}
