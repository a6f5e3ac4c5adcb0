/** Requests generated from an OpenAPI document: valid, nearly valid and hostile. */
import fc from 'fast-check'
import { z } from 'zod'
import { dereference } from '../dereferenced.ts'
import { isObject, type Members, type Memories, type Part, write, writePart } from './document.ts'
import { applyDamage, type Damage, damages } from './mutate.ts'
import { fitting, hostile, type Schema } from './values.ts'

export interface Operation {
  readonly route: string
  readonly method: string
  readonly path: string
  readonly parameters: readonly {
    readonly name: string
    readonly in: string
    readonly required: boolean
    readonly schema: Schema
  }[]
  readonly body: Schema | null
  readonly example: Part | null
  readonly responses: Readonly<
    Record<
      string,
      { readonly description: string; readonly content?: Readonly<Record<string, { schema?: Schema }>> }
    >
  >
}

/** A request to send. @property caller name in the cast. */
export interface Shot {
  readonly method: string
  readonly target: string
  readonly caller: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
  /** True if the target matches the documented route, so that the documented responses apply. */
  readonly isOnPath: boolean
}

/** A request with placeholders for values from earlier answers. */
export type Plan = (memories: Pick<Memories, 'of'>) => Shot

// The document is our own: its schemas are JSON Schemas.
const schema = z.custom<Schema>((value) => typeof value === 'object' && value !== null)
const part = z.custom<Part>(() => true)
const media = z.record(z.string(), z.object({ schema: schema.optional(), example: part.optional() }))
/** Its description tells which ids it takes. */
const parameter = z
  .object({
    name: z.string(),
    in: z.string(),
    required: z.boolean().default(false),
    description: z.string().optional(),
    schema,
  })
  .transform(({ description, ...rest }) =>
    description === undefined ? rest : { ...rest, schema: { ...rest.schema, description } },
  )
const document = z.object({
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.object({
        parameters: z.array(parameter).default([]),
        requestBody: z.object({ content: media }).optional(),
        responses: z.record(z.string(), z.object({ description: z.string(), content: media.optional() })),
      }),
    ),
  ),
  components: z.object({ schemas: z.object({ Problem: schema }) }),
})

/** The operations of a document, and the schema of its problems. */
export function listOperations(openApi: unknown): { operations: Operation[]; problem: Schema } {
  const { paths, components } = document.parse(dereference(openApi))
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([name, { parameters, requestBody, responses }]) => {
      const method = name.toUpperCase()
      const { schema: body = null, example = null } = requestBody?.content['application/json'] ?? {}
      // Zod's optional members are `undefined` where ours are absent; there is no other difference.
      return { route: `${method} ${path}`, method, path, parameters, body, example, responses } as Operation
    }),
  )
  return { operations, problem: components.schemas.Problem }
}

const queryNames = ['x', 'limit', 'cursor', '__proto__', 'constructor', 'a[b]', 'token', 'status', 'é', '']

const strangeHeaders = fc.oneof(
  { weight: 30, arbitrary: fc.constant<Record<string, string>>({}) },
  {
    weight: 10,
    arbitrary: fc.constantFrom<Record<string, string>>(
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/json; charset=utf-16' },
      { 'content-type': 'multipart/form-data; boundary=x' },
      { 'content-type': 'application/x-www-form-urlencoded' },
      { 'content-encoding': 'gzip' },
      { 'x-request-id': '../../etc' },
      { 'x-request-id': 'mine.1' },
      { 'x-forwarded-for': '1.2.3.4, ::1' },
      { 'x-http-method-override': 'DELETE' },
      { origin: 'https://evil.example' },
      { origin: 'null', 'sec-fetch-site': 'cross-site' },
      { accept: 'text/csv' },
      { accept: 'text/html' },
      { 'x-payment': 'e30=' },
      { 'payment-signature': 'not base64 !' },
      { 'x-payment': Buffer.from('{"x402Version":1,"scheme":"exact","payload":{}}').toString('base64') },
      { 'payment-signature': Buffer.from('{"x402Version":2,"payload":null}').toString('base64') },
      { 'content-digest': 'sha-256=:AAAA:' },
      { 'signature-input': 'sig1=();tag="bursar"', signature: 'sig1=:AAAA:' },
      { 'if-none-match': '*', range: 'bytes=0-1' },
    ),
  },
)

const idempotency = fc.oneof(
  { weight: 6, arbitrary: fc.constant(null) },
  { weight: 4, arbitrary: fc.nat(12).map((number) => `repeat-${number}`) },
  { weight: 2, arbitrary: fc.uuid() },
  {
    weight: 1,
    arbitrary: fc.constantFrom('x'.repeat(255), 'x'.repeat(256), 'a b', '__proto__', '~!@#$%^&*()'),
  },
)

/** Damage to a body's text, beyond its values. */
const textDamage: fc.Arbitrary<(text: string) => string> = fc.oneof(
  { weight: 40, arbitrary: fc.constant((text: string) => text) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      (text: string) => text.slice(0, -1),
      (text: string) => `\ufeff${text}`,
      (text: string) => `${text}{}`,
      (text: string) => `[${text}]`,
      (text: string) => text.replace('{', '{"__proto__":{},'),
      (text: string) => `${text}${text}`,
      (text: string) => text.replaceAll('"', "'"),
      (text: string) => `${' '.repeat(60_000)}${text}`,
      (text: string) => `${text}${' '.repeat(70_000)}`,
      () => '',
      () => 'null',
      () => '"text"',
      () => '0',
    ),
  },
)

/** Number of errors in a request: mostly none or one, or the first check would hide all later ones. */
const damageLists = fc.oneof(
  { weight: 8, arbitrary: fc.constant<Damage[]>([]) },
  { weight: 4, arbitrary: fc.array(damages, { minLength: 1, maxLength: 1 }) },
  { weight: 1, arbitrary: fc.array(damages, { minLength: 2, maxLength: 5 }) },
)

/** Weights none against one. @param times ratio of none to one. */
export function seldom<Value>(times: number, values: fc.Arbitrary<Value>): fc.Arbitrary<Value | null> {
  return fc.oneof({ weight: times, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: values })
}

/** Generates requests for an operation. @param cast callers, and those of them with broad access. */
export function plansFor(
  operation: Operation,
  { names: callers, able }: { readonly names: readonly string[]; readonly able: readonly string[] },
): fc.Arbitrary<Plan> {
  const { method, path, parameters, body, example } = operation
  const inside = (place: string) => parameters.filter((parameter) => parameter.in === place)
  const values = (place: string) =>
    fc.record(Object.fromEntries(inside(place).map(({ name, schema }) => [name, fitting(schema, name)])), {
      requiredKeys: inside(place).flatMap(({ name, required }) => (required ? [name] : [])),
    })
  const bodies: fc.Arbitrary<Part | null> =
    body === null
      ? fc.oneof(
          { weight: 8, arbitrary: fc.constant(null) },
          { weight: 2, arbitrary: fc.constant<Part>({}) },
          { weight: 1, arbitrary: hostile },
        )
      : fc.oneof(
          { weight: 7, arbitrary: fitting(body) },
          { weight: example === null ? 0 : 2, arbitrary: fc.constant(example) },
        )
  return fc
    .record({
      path: values('path'),
      query: values('query'),
      strangeQuery: seldom(10, fc.tuple(fc.constantFrom(...queryNames), hostile)),
      strangePath: seldom(30, fc.constantFrom('/', '%00', '%ff', '/..', ';a=b', '//x', '%2e%2e', '?')),
      body: bodies,
      damage: damageLists,
      textDamage,
      caller: fc.oneof(
        { weight: 2, arbitrary: fc.constantFrom(...callers) },
        { weight: 3, arbitrary: fc.constantFrom(...able) },
        { weight: path.startsWith('/api/admin/') ? 3 : 0, arbitrary: fc.constant('admin') },
      ),
      headers: strangeHeaders,
      key: idempotency,
    })
    .map((drawn) => (memories) => {
      const memory = memories.of(drawn.caller)
      const places = drawn.damage.length > 0 && body === null ? damagedAll(drawn, drawn.damage) : drawn
      const at = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
        escapeText(writePart(readMember(places.path, name), memory)),
      )
      const query = [
        ...Object.entries(isObject(places.query) ? places.query : {}),
        ...(drawn.strangeQuery === null ? [] : [drawn.strangeQuery]),
      ].map(([name, value]) => `${escapeText(name)}=${escapeText(writePart(value, memory))}`)
      const sent = drawn.body === null ? null : drawn.damage.reduce<Part>(applyDamage, drawn.body)
      const text = sent === null || method === 'GET' ? null : drawn.textDamage(write(sent, memory))
      return {
        method,
        target: `${at}${drawn.strangePath ?? ''}${query.length === 0 ? '' : `?${query.join('&')}`}`,
        caller: drawn.caller,
        headers: {
          ...(text === null ? {} : { 'content-type': 'application/json' }),
          ...(drawn.key === null ? {} : { 'idempotency-key': drawn.key }),
          ...drawn.headers,
        },
        body: text,
        isOnPath: drawn.strangePath === null && !at.includes('//') && !at.endsWith('/'),
      }
    })
}

function damagedAll({ path, query }: { path: Part; query: Part }, damage: readonly Damage[]) {
  const { path: inPath = path, query: inQuery = query } = Object(
    damage.reduce<Part>(applyDamage, { path, query }),
  )
  return { path: inPath as Part, query: inQuery as Part }
}

function readMember(value: Part, name: string): Part {
  const members: Members = isObject(value) ? value : {}
  return Object.hasOwn(members, name) ? (members[name] ?? '') : ''
}

/** A text for a URL. A lone surrogate has no encoding, so its bytes are sent verbatim. */
function escapeText(text: string): string {
  return [...text.slice(0, 4_000)]
    .map((character) => (/\p{Surrogate}/u.test(character) ? '%ED%A0%80' : encodeURIComponent(character)))
    .join('')
}
