/** Generates examples from JSON Schemas, so that documentation examples cannot drift from the schema. */
import type { JsonSchema } from '../../../kernel/catalogue.ts'

/** TypeID suffix used in every example id. */
const SUFFIX = '01kag5x0n0e8tr7v3m2c4q6w8y'

/** Sample strings to try against a pattern, format or length, most likely first. */
const candidates = [
  '12.50',
  '2026-11-20T12:00:00.000Z',
  '2026-11-20',
  'USDC',
  'USD',
  'VTI',
  '5411',
  'DE',
  '0x000000000000000000000000000000000000dEaD',
  `0x${'5f'.repeat(32)}`,
  '1',
  'ada@example.com',
  'https://bursar.example/sign-in',
  '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIU1B7WJYs',
  '123456',
  '09:00',
  'Example text',
]

/** Sample values by member name, used where the schema allows any string. The first match wins. */
const named: readonly (readonly [name: RegExp, value: string])[] = [
  [/(At|since|asOf|now|steppedUpUntil|timestamp)$/, '2026-11-20T12:00:00.000Z'],
  [/(date|day)$/i, '2026-11-20'],
  [/^(bankName)$/, 'Example Bank'],
  [/^bankAddress$/, '1 Example Street, New York, NY 10001'],
  [/^transaction$|hash$/i, `0x${'5f'.repeat(32)}`],
  [/^privateKey$/, `0x${'0'.repeat(63)}1`],
  [/address|destination|payTo|entryPoint|payer|counterparty/i, '0x000000000000000000000000000000000000dEaD'],
  [/^rpcUrl$/, 'http://127.0.0.1:8545'],
  [/url$/i, 'https://bursar.example/sign-in'],
  [/^last4$/, '4242'],
  [/^brand$/, 'visa'],
  [/^mcc$/, '5411'],
  [/^channel$/, 'ecommerce'],
  [/^merchant$/, 'Corner Shop'],
  [/^kycLevel$/, 'basic'],
  [/^scope$/, 'wallets:read'],
  [/^rule$/, 'per_transaction'],
  [/^category$/, 'transfer'],
  [/^(tool)$/, 'lifi'],
  [/^network$/, 'eip155:84532'],
  [/^source$/, 'ecb'],
  [/^settlementTime$/, 'seconds'],
  [/^rail$/, 'ach'],
  [/^list$/, 'ofac'],
  [/^recovery$/, 'email'],
  [/^recoveryCode$/, 'k7m2-9qxd-4ht8'],
  [/^code$/, '123456'],
  [/^routingNumber$/, '021000021'],
  [/^accountNumber$/, '000123456789'],
  [/^(keyId|challenge|policyHash)$/, 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'],
  [/^(sessionToken|demoApiKey|key)$/, '<secret, shown once>'],
  [/Qty$|^qty$/, '0.041666667'],
  [/pct|rate$/i, '0.92'],
  [/^(fromT|toT|t)oken$|^asset$/, 'USDC'],
  [/currency|^from$|^to$/i, 'USD'],
  [/^(chain|fromChain|toChain)$/, 'base-sepolia'],
  [/symbol/i, 'VTI'],
  [
    /amount|max|min|price|value|cash|equity|power|limit|fee|used|remaining|notional|usd|basis|pl$|booked|onChain|spent|held|approved|cleared|refunded|daily|per[A-Z]|requested|available|result/i,
    '12.50',
  ],
  [/name$/i, 'Ada Lovelace'],
]

/** Example spend policy. */
const policy = {
  currency: 'USD',
  perTransaction: { max: '50' },
  dailyBudget: { max: '200' },
  categories: { allow: ['transfer'] },
}

/** Members that are null in a successful response. */
const rare = /cursor$|reason$|^failure$|^problem$|^answer$|refusal/i

/**
 * Generates an example response. @param asked example of the request; members with the same name get the same value.
 */
export function responseExample(output: JsonSchema, request: unknown): unknown {
  const answer = buildExample(output)
  if (!isSchema(answer) || !isSchema(request) || !isSchema(output.properties)) return answer
  const { properties } = output
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]) => {
      const [same, schema] = [request[name], properties[name]]
      const isText = typeof same === 'string' && typeof value === 'string'
      return [name, isText && isSchema(schema) && isAccepted(same, schema) ? same : value]
    }),
  )
}

/** True if the schema accepts the text. */
function isAccepted(text: string, schema: JsonSchema): boolean {
  const variants = [schema.anyOf, schema.oneOf].find(Array.isArray)?.filter(isSchema)
  if (variants !== undefined) return variants.some((variant) => isAccepted(text, variant))
  if ('const' in schema) return schema.const === text
  if (Array.isArray(schema.enum)) return schema.enum.includes(text)
  return schema.type === 'string' && fits(text, schema)
}

/**
 * Generates an example value. @param name member that the schema belongs to. @param root document that `$ref` points
 * into.
 */
export function buildExample(schema: JsonSchema, name = '', root: JsonSchema = schema): unknown {
  const { $ref, examples, const: constant, enum: choices, anyOf, oneOf, allOf, type } = schema
  if (typeof $ref === 'string') return buildExample(resolveTarget($ref, root), name, root)
  if (Array.isArray(examples) && examples.length > 0) return examples[0]
  if ('default' in schema) return schema.default
  if ('const' in schema) return constant
  if (Array.isArray(choices)) return choices[0]
  if (rare.test(name) && isNullable(schema)) return null
  const variants = [anyOf, oneOf, allOf].find(Array.isArray)?.filter(isSchema)
  if (variants !== undefined) {
    const chosen = variants.find((variant) => variant.type !== 'null') ?? variants[0] ?? {}
    return buildExample({ description: schema.description, ...chosen }, name, root)
  }
  const [kind] = Array.isArray(type) ? type.filter((one) => one !== 'null') : [type]
  if (kind === 'object')
    return name === 'policy' && !isSchema(schema.properties) ? policy : buildObject(schema, root)
  if (kind === 'array') return buildList(schema, name, root)
  if (kind === 'string') return buildText(schema, name)
  if (kind === 'integer' || kind === 'number')
    return typeof schema.minimum === 'number' ? Math.max(schema.minimum, 1) : 1
  if (kind === 'boolean') return true
  return kind === undefined && name !== '' ? buildText(schema, name) : null
}

function isNullable({ type, anyOf }: JsonSchema): boolean {
  const types = Array.isArray(anyOf) ? anyOf.filter(isSchema).map((one) => one.type) : [type].flat()
  return types.includes('null')
}

function buildObject(schema: JsonSchema, root: JsonSchema): Record<string, unknown> {
  const { properties, additionalProperties, propertyNames } = schema
  const own = isSchema(properties)
    ? Object.entries(properties).filter((entry): entry is [string, JsonSchema] => isSchema(entry[1]))
    : []
  if (own.length > 0 || !isSchema(additionalProperties))
    return Object.fromEntries(own.map(([member, inner]) => [member, buildExample(inner, member, root)]))
  const keys =
    isSchema(propertyNames) && Array.isArray(propertyNames.enum) ? propertyNames.enum.map(String) : []
  return Object.fromEntries(keys.map((key) => [key, buildExample(additionalProperties, key, root)]))
}

function buildList({ items, prefixItems, minItems }: JsonSchema, name: string, root: JsonSchema): unknown[] {
  if (Array.isArray(prefixItems))
    return prefixItems.filter(isSchema).map((item) => buildExample(item, name, root))
  if (!isSchema(items)) return []
  const one = buildExample(items, name.replace(/s$/, ''), root)
  return Array.from({ length: typeof minItems === 'number' ? Math.max(minItems, 1) : 1 }, () => one)
}

/** Picks the first fitting text: from the description, then from the member name, then from the candidates. */
function buildText(schema: JsonSchema, name: string): string {
  const described = typeof schema.description === 'string' ? schema.description : ''
  const prefix = /`([a-z]{2,8}_)…`/.exec(described)?.[1]
  const quoted = (/such as `([^`]+)`/.exec(described) ?? /`([a-z][\w.:-]*)`/.exec(described))?.[1]
  const meant = named.find(([pattern]) => pattern.test(name))?.[1]
  const tried = [
    ...(prefix === undefined ? [] : [`${prefix}${SUFFIX}`]),
    ...(quoted === undefined ? [] : [quoted]),
    ...(meant === undefined ? [] : [meant]),
    ...(/ISO 8601 date/.test(described) ? ['2026-11-20'] : []),
    ...(/ISO 8601/.test(described) ? ['2026-11-20T12:00:00.000Z'] : []),
    ...(schema.pattern === undefined && schema.format === undefined ? ['Example text'] : candidates),
    'x'.repeat(typeof schema.minLength === 'number' ? schema.minLength : 1),
  ]
  return tried.find((text) => fits(text, schema)) ?? tried[0] ?? ''
}

const formats: Readonly<Record<string, RegExp>> = {
  'date-time': /^\d{4}-\d\d-\d\dT[\d:.]+Z$/,
  date: /^\d{4}-\d\d-\d\d$/,
  email: /^[^@\s]+@[^@\s]+$/,
  uri: /^https?:/,
}

function fits(text: string, { pattern, format, minLength, maxLength }: JsonSchema): boolean {
  if (typeof pattern === 'string' && !new RegExp(pattern, 'u').test(text)) return false
  if (typeof format === 'string' && formats[format]?.test(text) === false) return false
  if (typeof minLength === 'number' && text.length < minLength) return false
  return typeof maxLength !== 'number' || text.length <= maxLength
}

function resolveTarget(ref: string, root: JsonSchema): JsonSchema {
  const found = ref
    .replace(/^#\/?/, '')
    .split('/')
    .reduce<unknown>((at, name) => (isSchema(at) && name !== '' ? at[name] : at), root)
  return isSchema(found) ? found : {}
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
