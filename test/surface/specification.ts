/**
 * Facts of the interface specification that Bursar implements: the rows of its tables, by section. The journey beside this
 * file tries each row over HTTP; `docs/specification.md` says where Bursar goes beyond them.
 */

type FieldType =
  | 'string'
  | 'number'
  | 'boolean'
  | 'object'
  | 'object or null'
  | 'array of string'
  | 'array of object'
  | 'array of Balance'

/** A member of a request or a response. @property allowed all values, where the specification lists them. */
export interface Field {
  readonly section: string
  readonly name: string
  readonly type: FieldType
  readonly isRequired: boolean
  readonly allowed?: readonly string[]
}

const stablecoins = ['USDC', 'USDT', 'EURC', 'PYUSD']

/** A response always has all its members. */
export const responseFields: readonly Field[] = [
  { section: '2.1', name: 'safeAddress', type: 'string', isRequired: true },
  { section: '2.1', name: 'modules', type: 'array of object', isRequired: true },
  { section: '2.1', name: 'balances', type: 'array of Balance', isRequired: true },
  { section: '2.2', name: 'token', type: 'string', isRequired: true, allowed: stablecoins },
  { section: '2.2', name: 'amount', type: 'string', isRequired: true },
  { section: '2.2', name: 'chain', type: 'string', isRequired: true },
]

/** Routes of the sections that describe a request. */
export const requestRoutes: Readonly<Record<string, string>> = {
  '2.3': 'POST /api/auth/webauthn',
  '2.4': 'POST /api/wallets/transfer',
  '2.5': 'POST /api/banking',
  '2.6': 'POST /api/cards/settings',
  '2.7': 'POST /api/investing/order',
  '2.8': 'POST /api/swaps',
}

export const requestFields: readonly Field[] = [
  { section: '2.3', name: 'action', type: 'string', isRequired: true, allowed: ['register', 'login'] },
  { section: '2.3', name: 'credential', type: 'object or null', isRequired: false },
  { section: '2.4', name: 'safeAddress', type: 'string', isRequired: false },
  { section: '2.4', name: 'destination', type: 'string', isRequired: true },
  { section: '2.4', name: 'amount', type: 'number', isRequired: true },
  { section: '2.4', name: 'token', type: 'string', isRequired: false },
  { section: '2.4', name: 'chain', type: 'string', isRequired: false },
  { section: '2.4', name: 'signature', type: 'string', isRequired: true },
  {
    section: '2.5',
    name: 'currency',
    type: 'string',
    isRequired: true,
    allowed: ['USD', 'EUR', 'GBP', 'INR'],
  },
  { section: '2.6', name: 'cardId', type: 'string', isRequired: true },
  { section: '2.6', name: 'freeze', type: 'boolean', isRequired: false },
  { section: '2.6', name: 'limits', type: 'object', isRequired: false },
  { section: '2.6', name: 'priority', type: 'array of string', isRequired: false },
  { section: '2.7', name: 'symbol', type: 'string', isRequired: true },
  { section: '2.7', name: 'side', type: 'string', isRequired: true, allowed: ['buy', 'sell'] },
  { section: '2.7', name: 'notional', type: 'number', isRequired: true },
  { section: '2.7', name: 'type', type: 'string', isRequired: false, allowed: ['market', 'limit'] },
  { section: '2.8', name: 'fromToken', type: 'string', isRequired: true },
  // The table says optional; the note below it says required, and wins.
  { section: '2.8', name: 'toToken', type: 'string', isRequired: true },
  { section: '2.8', name: 'fromChain', type: 'string', isRequired: true },
  { section: '2.8', name: 'toChain', type: 'string', isRequired: false },
  { section: '2.8', name: 'amountIn', type: 'number', isRequired: true },
]

/**
 * A route. @property who may call it: anybody, an account (with a session or a key), a session, or a provider.
 * @property answer members of the response that carry its success payload. A provider's name in a path stands in braces.
 */
export interface Route {
  readonly section: '4.1' | '4.2'
  readonly route: string
  readonly who: 'public' | 'account' | 'session' | 'provider'
  readonly answer: readonly string[]
}

export const routes: readonly Route[] = [
  {
    section: '4.1',
    route: 'POST /api/auth/webauthn',
    who: 'public',
    answer: ['challengeId', 'publicKey'],
  },
  {
    section: '4.1',
    route: 'GET /api/wallets',
    who: 'account',
    answer: ['safeAddress', 'modules', 'balances'],
  },
  {
    section: '4.1',
    route: 'POST /api/wallets/transfer',
    who: 'account',
    answer: ['transactionHash'],
  },
  { section: '4.1', route: 'GET /api/banking', who: 'account', answer: ['accounts'] },
  {
    section: '4.1',
    route: 'POST /api/banking',
    who: 'account',
    answer: ['id', 'currency', 'instructions'],
  },
  { section: '4.1', route: 'GET /api/cards', who: 'account', answer: ['cards'] },
  { section: '4.1', route: 'PATCH /api/cards', who: 'account', answer: ['id', 'nickname'] },
  {
    section: '4.1',
    route: 'POST /api/cards/settings',
    who: 'account',
    answer: ['success'],
  },
  {
    section: '4.1',
    route: 'POST /api/investing/order',
    who: 'account',
    answer: ['id', 'status'],
  },
  {
    section: '4.1',
    route: 'GET /api/investing/portfolio',
    who: 'account',
    answer: ['holdings', 'dividends', 'performance'],
  },
  {
    section: '4.1',
    route: 'POST /api/swaps',
    who: 'account',
    answer: ['amountOut', 'order'],
  },
  {
    section: '4.1',
    route: 'POST /api/compliance/kyc',
    who: 'account',
    answer: ['status'],
  },
  {
    section: '4.1',
    route: 'POST /api/compliance/travel-rule',
    who: 'account',
    answer: ['payload'],
  },
  {
    section: '4.1',
    route: 'POST /api/webhooks/{card_processor}',
    who: 'provider',
    answer: ['result'],
  },
  {
    section: '4.1',
    route: 'POST /api/webhooks/{stablecoin_provider}',
    who: 'provider',
    answer: ['received'],
  },
  { section: '4.2', route: 'POST /api/auth/otp/start', who: 'public', answer: ['challengeId'] },
  {
    section: '4.2',
    route: 'POST /api/auth/{identity_provider_a}',
    who: 'public',
    answer: ['authorizationUrl'],
  },
  {
    section: '4.2',
    route: 'POST /api/auth/{identity_provider_b}',
    who: 'public',
    answer: ['authorizationUrl'],
  },
  { section: '4.2', route: 'POST /api/auth/guest', who: 'public', answer: ['account', 'sessionToken'] },
  { section: '4.2', route: 'POST /api/security/mfa', who: 'session', answer: ['status'] },
  {
    section: '4.2',
    route: 'POST /api/agents/keys',
    who: 'session',
    answer: ['agentId', 'keyId', 'policy'],
  },
  {
    section: '4.2',
    route: 'POST /api/transfers/gasless',
    who: 'account',
    answer: ['transactionHash'],
  },
  { section: '4.2', route: 'GET /api/rails', who: 'public', answer: ['rails'] },
  { section: '4.2', route: 'POST /api/docs/feedback', who: 'public', answer: ['up', 'down'] },
  { section: '4.2', route: 'GET /api/x402/fx', who: 'public', answer: ['from', 'to', 'amount', 'rate'] },
]

/** The providers whose names stand in the paths. */
export const providerNames: Readonly<Record<string, string>> = {
  card_processor: 'lithic',
  stablecoin_provider: 'bridge',
  identity_provider_a: 'google',
  identity_provider_b: 'apple',
}

/** First words of the rows that a scenario tries. */
export const states = ['account locked', 'card not frozen', 'card frozen'] as const
export const schemes = [
  'Bearer',
  'Session cookie',
  'Signed requests',
  'Scoped authorization',
  'Provider signature',
] as const
export const events = ['card authorization request', 'stablecoin deposit or payout'] as const
export const errors = ['403', '423', '429', '503'] as const

/** A limit per client address. @property perMinute null where the specification has no number. */
export interface Limit {
  readonly scope: string
  readonly perMinute: number | null
}

export const limits = [
  { scope: 'every mutating request', perMinute: 150 },
  { scope: 'POST /api/transfers/gasless', perMinute: 12 },
  { scope: 'GET /api/rails', perMinute: 60 },
  { scope: 'POST /api/docs/feedback', perMinute: 10 },
  { scope: 'GET /api/x402/fx', perMinute: null },
  { scope: 'OTP and e-mail sending routes', perMinute: null },
] as const satisfies readonly Limit[]

/** Sections of the numbered rules that a request can show, with the rule. */
export const rules = {
  '5.2.1': 'signing in sets an HttpOnly cookie',
  '5.2.2': 'a session cookie with a false signature authenticates nobody',
  '5.2.3': 'a changed role applies to the next request of the same session',
  '5.2.6': 'privileged operations need a fresh second factor',
  '5.2.7': 'a guest never becomes an administrator',
  '5.3.2': 'a signed request with another body or without its digest is rejected',
  '5.3.3': 'a key’s limit per transaction, daily budget and categories hold',
  '5.4.1': 'a price is quoted without an account',
  '5.5.2': 'an API key does not stand in for a person’s session',
  '5.5.4': 'credentials in a query string are rejected',
  '9.1': 'the description has version 0.1.0, and no path a version segment',
} as const
