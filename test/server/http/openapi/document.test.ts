import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { failures } from '../../../../src/core/failures/failure.ts'
import { buildCatalogue } from '../../../../src/kernel/catalogue.ts'
import { defineTool } from '../../../../src/kernel/tool.ts'
import { openApiDocument } from '../../../../src/server/http/openapi/document.ts'
import { listPaths } from '../../../../src/server/http/tool-paths.ts'
import { tools } from '../../../../tools/index.ts'
import { origin, sandboxSettings } from '../../../kernel/scene.ts'

const settings = { ...sandboxSettings, mode: 'sandbox', fxPrice: { asset: 'USDC', units: 1n } } as const

const schema = z.record(z.string(), z.unknown())
const content = z.record(z.string(), z.object({ schema, example: z.unknown().optional() }))
const reference = z.strictObject({ $ref: z.string() })
const parameter = z.object({
  name: z.string(),
  in: z.enum(['query', 'path', 'header']),
  required: z.literal(true).optional(),
  description: z.string().min(1),
  schema,
})
const operation = z.object({
  operationId: z.string().min(1),
  tags: z.array(z.string()).min(1),
  summary: z.string().min(1),
  description: z.string().min(10).optional(),
  security: z.array(z.record(z.string(), z.array(z.string()))),
  parameters: z.array(z.unknown()).min(1).optional(),
  requestBody: z.object({ required: z.literal(true), content }).optional(),
  responses: z.record(
    z.string().regex(/^([2-5]\d\d|default)$/),
    z.union([reference, z.object({ description: z.string().min(1), content })]),
  ),
})
const document = z.object({
  openapi: z.string().regex(/^3\.1\.\d$/),
  info: z.object({ title: z.literal('Bursar'), version: z.literal('0.1.0'), description: z.string() }),
  servers: z.tuple([z.object({ url: z.literal(origin) })]),
  tags: z.array(z.object({ name: z.string(), description: z.string().min(10) })),
  paths: z.record(
    z.string().startsWith('/'),
    z.partialRecord(z.enum(['get', 'post', 'put', 'patch', 'delete']), operation),
  ),
  components: z.object({
    schemas: schema,
    securitySchemes: schema,
    responses: z.record(z.string(), z.object({ description: z.string().min(1), content })),
    parameters: z.record(z.string(), parameter),
  }),
})

const provider = {
  authorizationUrl: async () => '',
  identify: async () => Promise.reject(new Error('never asked')),
}
const providers = new Map([
  ['google', provider],
  ['apple', provider],
])
const describeTools = (of: typeof tools = tools) => {
  const written: unknown = JSON.parse(
    JSON.stringify(openApiDocument(buildCatalogue(of, settings), { settings, identityProviders: providers })),
  )
  return { written, parsed: document.parse(written) }
}

/** Paths at which a tool is served, with their operation ids. */
const listServed = (tool: (typeof tools)[number]) =>
  listPaths(tool, { identityProviders: providers }).map((path) => ({
    ...path,
    method: tool.route.split(' ')[0] ?? '',
  }))

/** Every `$ref` below a value. */
function refsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) =>
    name === '$ref' && typeof member === 'string' ? [member] : refsIn(member),
  )
}

function resolve(root: unknown, ref: string): unknown {
  return ref
    .replace(/^#\//, '')
    .split('/')
    .reduce<unknown>(
      (at, name) =>
        typeof at === 'object' && at !== null
          ? Object.entries(at).find(([key]) => key === name)?.[1]
          : undefined,
      root,
    )
}

describe('the OpenAPI document', () => {
  it('lists every tool at its route, under its name, once', () => {
    const { paths } = describeTools().parsed
    const found = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(
        ([method, { operationId }]) => `${method.toUpperCase()} ${path} ${operationId}`,
      ),
    )
    const expected = tools.flatMap((tool) =>
      listServed(tool).map(({ method, at, name }) => `${method} ${at} ${name}`),
    )
    const webhooks = ['lithic', 'bridge', 'sumsub'].map((one) => `POST /api/webhooks/${one} webhooks.${one}`)
    expect(found.sort()).toEqual([...expected, ...webhooks].sort())
    expect(found).toEqual(
      expect.arrayContaining([
        'POST /api/auth/apple auth.identity_provider.apple',
        'POST /api/auth/google auth.identity_provider.google',
      ]),
    )
  })

  it('has no dangling references', () => {
    const { written } = describeTools()
    const refs = refsIn(written)
    expect(refs.length).toBeGreaterThan(10)
    for (const ref of refs) expect([ref, resolve(written, ref)]).not.toEqual([ref, undefined])
    const { components, paths } = describeTools().parsed
    const schemes = Object.values(paths)
      .flatMap((methods) => Object.values(methods))
      .flatMap(({ security }) => security.flatMap(Object.keys))
    expect(schemes.length).toBeGreaterThan(100)
    for (const name of schemes) expect(Object.keys(components.securitySchemes)).toContain(name)
  })

  it('lists every failure of each operation, by status and code', () => {
    const {
      paths,
      components: { responses: shared },
    } = describeTools().parsed
    const operations = tools.flatMap((tool) => listServed(tool).map((path) => [tool, path] as const))
    expect(operations.length).toBeGreaterThan(100)
    for (const [tool, { method, at }] of operations) {
      const responses =
        Object.entries(paths[at] ?? {}).find(([name]) => name === method.toLowerCase())?.[1]?.responses ?? {}
      const readDescription = (status: string) => {
        const response = responses[status]
        return response !== undefined && '$ref' in response
          ? shared[response.$ref.replace('#/components/responses/', '')]?.description
          : response?.description
      }
      for (const code of [...tool.failures, 'invalid_request', 'internal'] as const)
        expect([
          tool.name,
          `${readDescription(String(failures[code].status))} ${readDescription('default')}`,
        ]).toEqual([tool.name, expect.stringContaining(`\`${code}\``)])
      const common = readDescription('default') ?? ''
      expect([at, common.includes('423 `account_locked`')]).toEqual([
        at,
        tool.who !== 'public' || tool.effect !== 'read',
      ])
      if (method !== 'GET') expect([at, common]).toEqual([at, expect.stringContaining('429 `rate_limited`')])
    }
  })

  it('names the shapes that clients work with, and says each once', () => {
    const { written, parsed } = describeTools()
    const names = Object.keys(parsed.components.schemas)
    expect(names).toEqual(
      expect.arrayContaining([
        ...['Account', 'Agent', 'Amount', 'Approval', 'Card', 'CardTransaction', 'Decision', 'Order'],
        ...['Policy', 'Problem', 'Purchase', 'Session', 'Transfer', 'VirtualAccount', 'Violation'],
      ]),
    )
    expect(new Set(refsIn(written))).toContain('#/components/schemas/Card')
    const shapes = Object.values(parsed.components.schemas).map((shape) => JSON.stringify(shape))
    const repeated = shapes.filter((shape, index) => shape.length > 400 && shapes.indexOf(shape) !== index)
    expect(repeated).toEqual([])
  })

  it('repeats no parameter or response, and has no component for one use', () => {
    const { written, parsed } = describeTools()
    const own = Object.values(parsed.paths)
      .flatMap((methods) => Object.values(methods))
      .flatMap(({ parameters = [], responses }) => [...parameters, ...Object.values(responses)])
    const inline = own.filter((one) => !reference.safeParse(one).success).map((one) => JSON.stringify(one))
    const failures = inline.filter((one) => one.includes('/Problem"') || one.includes('"in":'))
    expect(failures.filter((one, at) => failures.indexOf(one) !== at)).toEqual([])
    const uses = refsIn(written)
    for (const kind of ['parameters', 'responses'] as const)
      for (const name of Object.keys(parsed.components[kind])) {
        const count = uses.filter((one) => one === `#/components/${kind}/${name}`).length
        expect([name, count > 1]).toEqual([name, true])
      }
  })

  it('has a 202 where an answer may wait for a person', () => {
    const { written } = describeTools()
    const waiting = tools.filter(({ waits }) => waits !== undefined).map(({ name }) => name)
    const answers = z.object({
      paths: z.record(
        z.string(),
        z.record(z.string(), z.looseObject({ operationId: z.string(), responses: z.looseObject({}) })),
      ),
    })
    const operations = Object.values(answers.parse(written).paths).flatMap((path) => Object.values(path))
    const with202 = operations.filter(({ responses }) => '202' in responses)
    expect(with202.map(({ operationId }) => operationId)).toEqual(waiting)
    expect(waiting).toContain('auth.recovery.complete')
  })

  it('has at most 508 KB, and 85 KB compressed', () => {
    const text = JSON.stringify(describeTools().written)
    expect(text.length).toBeLessThan(508_000)
    expect(gzipSync(text, { level: 9 }).length).toBeLessThan(85_000)
  })

  it('describes each operation beyond its summary', () => {
    const silent = buildCatalogue(tools, settings).filter(({ tool }) => (tool.description ?? '').length < 10)
    expect(silent.map(({ tool }) => tool.name)).toEqual([])
  })

  it('bounds every text and list of an input, in patterns that every language compiles', () => {
    const wrong: string[] = []
    const isBounded = (text: Record<string, unknown>) =>
      ['maxLength', 'enum', 'const', 'format'].some((keyword) => keyword in text) ||
      (typeof text.pattern === 'string' &&
        !/[*+]|\{\d+,\}/.test(text.pattern.replaceAll(/\\.|\[[^\]]*\]/g, 'x')))
    const visit = (at: unknown, path: string): void => {
      if (Array.isArray(at)) for (const one of at) visit(one, path)
      const { success, data } = schema.safeParse(at)
      if (!success || Array.isArray(at)) return
      if (data.type === 'string' && !isBounded(data)) wrong.push(path)
      if (data.type === 'array' && data.maxItems === undefined) wrong.push(path)
      for (const [name, value] of Object.entries(data)) visit(value, `${path}.${name}`)
    }
    for (const { tool, input } of buildCatalogue(tools, settings)) {
      visit(input, tool.name)
      expect(JSON.stringify(input)).not.toMatch(/\\p\{/i)
    }
    expect(wrong).toEqual([])
  })

  it('groups the operations in the order that readers need, each group described', () => {
    const { tags, paths } = describeTools().parsed
    const used = Object.values(paths).flatMap((methods) => Object.values(methods).flatMap((one) => one.tags))
    expect([...new Set(used)].sort()).toEqual(tags.map(({ name }) => name).sort())
    expect(tags.slice(0, 5).map(({ name }) => name)).toEqual([
      ...['Auth', 'Agents', 'Approvals', 'Activity', 'Wallets'],
    ])
  })

  it('describes a path parameter in the path, and not again in the body', () => {
    const rename = defineTool({
      name: 'notes.rename',
      title: 'Rename',
      summary: 'Rename a note.',
      route: 'PATCH /api/docs/notes/{id}',
      who: 'account',
      scopes: [],
      effect: 'write',
      proof: 'none',
      mcp: false,
      input: z.strictObject({ id: z.string(), name: z.string() }),
      output: z.strictObject({}),
      failures: [],
      example: { id: 'n_1', name: 'x' },
      run: async () => ({}),
    })
    const { paths, components } = describeTools([rename]).parsed
    const { patch } = paths['/api/docs/notes/{id}'] ?? {}
    expect(patch?.parameters).toContainEqual({
      name: 'id',
      in: 'path',
      required: true,
      schema: { type: 'string' },
      example: 'n_1',
    })
    expect(patch?.requestBody?.content['application/json']).toEqual({
      schema: { $ref: '#/components/schemas/NotesRenameRequest' },
      example: { name: 'x' },
    })
    expect(components.schemas.NotesRenameRequest).toEqual({
      type: 'object',
      properties: { name: { type: 'string' } },
      required: ['name'],
      additionalProperties: false,
    })
  })
})
