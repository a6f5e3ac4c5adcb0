/** Values that match a JSON Schema of ours, and hostile ones. */
import fc from 'fast-check'
import { buildKnown, type Part, raw } from './document.ts'

/** The subset of JSON Schema that our documents use. */
export interface Schema {
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly propertyNames?: Schema
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly enum?: readonly Part[]
  readonly const?: Part
  readonly pattern?: string
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly description?: string
}

type Values = fc.Arbitrary<Part>

const hexText = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length })

/** A few addresses, so that payees repeat; by their last digits one is sanctioned and one is under review. */
const addresses = fc.constantFrom(
  ...['1', '2', 'a'].map((digit) => `0x${digit.repeat(40)}`),
  '0x00000000000000000000000000000000000A11cE',
  `0x${'1'.repeat(36)}9999`,
  `0x${'1'.repeat(36)}8888`,
  `0x${'0'.repeat(40)}`,
)

const amounts = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('0.01', '1', '1.5', '0.000001', '10', '2.50') },
  { weight: 4, arbitrary: fc.constantFrom(0.01, 1, 2.5, 10) },
  { weight: 1, arbitrary: fc.constantFrom('100', '1000', '999999.999999', '1000000000000') },
)

/** Likely values by member name: a schema alone would rarely produce an existing object. */
const byName: Readonly<Record<string, Values>> = {
  amount: amounts,
  amountIn: amounts,
  notional: amounts,
  max: amounts,
  above: amounts,
  daily: amounts,
  perPurchase: amounts,
  limitPrice: amounts,
  symbol: fc.constantFrom('VTI', 'AAPL', 'SPY', 'MSFT', 'NOPE'),
  destination: addresses,
  address: addresses,
  token: fc.constantFrom('USDC', 'USDT', 'EURC', 'PYUSD'),
  fromToken: fc.constantFrom('USDC', 'USDT', 'EURC', 'ETH', 'NOPE'),
  toToken: fc.constantFrom('USDC', 'USDT', 'EURC', 'ETH', 'NOPE'),
  fromChain: fc.constantFrom('base', 'base-sepolia', 'ethereum', 'solana', 'nowhere'),
  toChain: fc.constantFrom('base', 'base-sepolia', 'ethereum', 'solana', 'nowhere'),
  chain: fc.constantFrom('base-sepolia', 'base', 'nowhere'),
  from: fc.constantFrom('USD', 'EUR', 'GBP', 'USDC', 'JPY', 'XXX'),
  to: fc.constantFrom('USD', 'EUR', 'GBP', 'USDC', 'JPY', 'XXX'),
  url: fc.nat(9).map((pick) => buildKnown('seller', pick)),
  // Lower prices would stop all spending.
  price: fc.constantFrom('1', '0.98', '1.02', '10', '-1'),
  maxAmount: fc.constantFrom('0.05', '0.0000001', '-1', '1000'),
  signature: fc.constantFrom('sandbox', `0x${'1'.repeat(130)}`),
  code: fc.constantFrom('000000', '123456'),
  country: fc.constantFrom('US', 'DE', 'GB', 'ZZ'),
  limit: fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 100 }).map(String)),
  // A statement is of a month in which the account existed.
  period: fc.constantFrom(new Date().toISOString().slice(0, 7), '2026-01..2026-02', '1999-12'),
  tz: fc.constantFrom('UTC', 'Europe/Berlin', 'Nowhere/Here'),
  expiresAt: fc.constantFrom('2030-01-01T00:00:00.000Z', '2020-01-01T00:00:00.000Z'),
}

/** Likely objects by member name: random bank accounts never have valid check digits. */
const objectsByName: Readonly<Record<string, Values>> = {
  account: fc.constantFrom<Part>(
    { routingNumber: '021000021', accountNumber: '123456789' },
    { iban: 'DE89370400440532013000' },
    { sortCode: '123456', accountNumber: '12345678' },
  ),
}

/** Ids from earlier answers. */
const ids = (kind: string): Values => fc.nat(199).map((pick) => buildKnown(kind, pick))

/** Valid values. @param name of the member, which is more specific than its type. */
export function fitting(schema: Schema, name = ''): Values {
  const likelyBy = typeOf(schema) === 'object' ? objectsByName : byName
  const likely = Object.hasOwn(likelyBy, name) ? likelyBy[name] : undefined
  const bySchema = ofSchema(schema, name)
  if (likely === undefined) return bySchema
  return fc.oneof({ weight: 9, arbitrary: likely }, { weight: 1, arbitrary: bySchema })
}

function typeOf({ type }: Schema): string | undefined {
  return typeof type === 'string' ? type : type?.[0]
}

function ofSchema(schema: Schema, name: string): Values {
  const ways = schema.anyOf ?? schema.oneOf
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (ways !== undefined) return fc.oneof(...ways.map((way) => fitting(way, name)))
  switch (typeOf(schema)) {
    case 'object':
      return objects(schema)
    case 'array': {
      const { items = {}, minItems = 0, maxItems = 4 } = schema
      return fc.array(fitting(items, name), {
        minLength: minItems,
        maxLength: Math.min(maxItems, minItems + 3),
      })
    }
    case 'string':
      return texts(schema, name)
    case 'integer':
      return fc.integer({
        min: Math.max(schema.minimum ?? schema.exclusiveMinimum ?? -5, -1e9),
        max: Math.min(schema.maximum ?? 1_000_000, 1e9),
      })
    case 'number':
      return fc.double({ min: schema.minimum ?? 0, max: schema.maximum ?? 1e6, noNaN: true })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    default:
      return fc.constantFrom<Part>('x', 1, null, { a: 1 })
  }
}

function objects({ properties = {}, required = [], additionalProperties, propertyNames }: Schema): Values {
  const members = Object.fromEntries(
    Object.entries(properties).map(([member, schema]) => [member, fitting(schema, member)]),
  )
  const named = fc.record(members, { requiredKeys: required.filter((member) => member in members) })
  if (typeof additionalProperties !== 'object' || Object.keys(members).length > 0) return named
  const names =
    propertyNames === undefined ? fc.string({ minLength: 1, maxLength: 8 }) : fitting(propertyNames)
  return fc.dictionary(names.map(String), fitting(additionalProperties), { maxKeys: 3 })
}

function texts(
  { pattern, format, minLength = 0, maxLength = 40, description = '' }: Schema,
  name: string,
): Values {
  const kind = /`([a-z]+)_…`/.exec(description)?.[1]
  if (kind !== undefined || /(^id|Id|cursor)$/.test(name)) return ids(kind ?? '')
  if (format === 'email') return fc.nat(50).map((number) => `fuzz-${number}@example.com`)
  if (format === 'date-time')
    return fc.constantFrom('2026-01-01T00:00:00.000Z', '2030-01-01T00:00:00Z', '0000-01-01T00:00:00Z')
  if (format === 'date') return fc.constantFrom('1990-01-31', '2020-02-29', '0001-01-01', '9999-12-31')
  if (pattern === '^0x[0-9a-fA-F]{40}$') return addresses
  const hexLength = /^\^0x\[0-9a-fA-F\]\{(\d+)\}\$$/.exec(pattern ?? '')?.[1]
  if (hexLength !== undefined) return hexText(Number(hexLength)).map((digits) => `0x${digits}`)
  if (pattern === '^[A-Za-z0-9_-]+$')
    return fc.string({
      unit: fc.constantFrom(...'AZaz09_-'),
      minLength,
      maxLength: Math.max(minLength, maxLength),
    })
  // Values beyond the length limits are useful, too.
  if (pattern !== undefined && !/\\p|\\P/.test(pattern))
    return fc.stringMatching(new RegExp(pattern), { size: 'small' })
  return fc.string({ minLength, maxLength: Math.max(minLength, Math.min(maxLength, 40)), unit: 'grapheme' })
}

/** Typical attack values. */
export const hostile: Values = fc.oneof(
  fc.constantFrom<Part>(
    '',
    ' ',
    '\0',
    'a\0b',
    '\ud800',
    '\u202e\ufeff\u200b',
    '👩‍👩‍👧‍👦',
    'ﬁ１２',
    "' or 1=1 --",
    '{{7*7}}<script>',
    '../../etc/passwd',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'NaN',
    'Infinity',
    '-0',
    '0x10',
    '1e5',
    '1_000',
    '１２',
    '00.1',
    '.5',
    '5.',
    '-1',
    '+1',
    '0',
    '0.0000001',
    '1000000000001',
    '9'.repeat(400),
    `0.${'1'.repeat(400)}`,
    'x'.repeat(300),
    'x'.repeat(20_000),
    '9999-12-31T23:59:59.999Z',
    '0000-01-01T00:00:00.000Z',
    '+275760-09-13T00:00:00.000Z',
    '2026-02-30',
    '2026-01-01T00:00:00+14:00',
    `0x${'f'.repeat(40)}`,
    `0X${'1'.repeat(40)}`,
    `acct_${'z'.repeat(26)}`,
    'bsk_sandbox_x',
  ),
  fc.constantFrom<Part>(true, false, null, [], {}, [[]], [null], { a: { b: [] } }, { length: 5 }),
  fc.constantFrom<Part>(0, -1, 0.1, 1.5, 1e21, 2 ** 31, 2 ** 53, 2 ** 63, 5e-324, Number.MAX_VALUE, 1e-7),
  fc.constantFrom(
    raw('1e999'),
    raw('-1e999'),
    raw('-0'),
    raw('0.10'),
    raw('1.0'),
    raw('1E2'),
    raw('9'.repeat(400)),
    raw(`0.${'1'.repeat(400)}`),
    raw('9007199254740993'),
    raw('{"__proto__":{"admin":true}}'),
    raw('{"constructor":{"prototype":{"admin":true}}}'),
    raw('{"a":1,"a":2}'),
    raw('"\\ud800"'),
    raw('"\\u0000"'),
    raw('01'),
    raw('undefined'),
    raw('NaN'),
    raw(`${'['.repeat(60)}${']'.repeat(60)}`),
    raw(`${'{"a":'.repeat(200)}1${'}'.repeat(200)}`),
    raw(`[${'0,'.repeat(5_000)}0]`),
  ),
  ids(''),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.double(),
  fc.bigInt().map((number) => raw(String(number))),
)
