/** Every operation documents an example request and response, and both match its schemas. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Failure, failureCodes, failures } from '../../../src/core/failures/failure.ts'
import { failureGuide } from '../../../src/core/failures/failure-guide.ts'
import { buildCatalogue } from '../../../src/kernel/catalogue.ts'
import { buildExample, responseExample } from '../../../src/server/http/openapi/build-example.ts'
import { openApiDocument } from '../../../src/server/http/openapi/document.ts'
import { problemExample, problemSchema } from '../../../src/server/http/openapi/problem.ts'
import { readReference } from '../../../src/server/http/pages/docs/operations.ts'
import { tools } from '../../../tools/index.ts'
import { dereference } from '../../dereferenced.ts'
import { origin } from '../../kernel/scene.ts'

const catalogue = buildCatalogue(tools, { mode: 'sandbox', guests: true })
const provider = {
  authorizationUrl: async () => '',
  identify: async () => Promise.reject(new Error('never asked')),
}
const json = z.object({ 'application/json': z.object({ schema: z.looseObject({}), example: z.unknown() }) })
const operations = z.record(
  z.string(),
  z.record(
    z.string(),
    z.looseObject({
      operationId: z.string(),
      parameters: z
        .array(z.looseObject({ name: z.string(), in: z.string(), required: z.boolean().default(false) }))
        .default([]),
      requestBody: z.looseObject({ content: json }).optional(),
      responses: z.record(z.string(), z.looseObject({ content: z.looseObject({}).optional() })),
    }),
  ),
)
const settings = { mode: 'sandbox', origin } as const
// Only mode and origin of the settings reach the document.
const services: Parameters<typeof openApiDocument>[1] = {
  settings: { ...settings } as Parameters<typeof openApiDocument>[1]['settings'],
  identityProviders: new Map([['google', provider]]),
}
const described = openApiDocument(catalogue, services)
const document = z
  .looseObject({ paths: operations, info: z.looseObject({ description: z.string() }) })
  .parse(dereference(JSON.parse(JSON.stringify(described))))
const all = Object.values(document.paths).flatMap((methods) => Object.values(methods))

describe('the examples', () => {
  it.each(catalogue.map((entry) => [entry.tool.name, entry] as const))(
    '%s has an example answer that matches its own schema and the published one',
    (_name, { tool, output }) => {
      const example = responseExample(output, tool.example)
      expect(tool.output.safeParse(example).error?.issues ?? []).toEqual([])
      expect(Object.keys(z.record(z.string(), z.unknown()).parse(example)).length).toBeGreaterThan(0)
    },
  )

  it('exist for every operation: the request if it takes a body, and in the reference the answer', () => {
    expect(all.length).toBeGreaterThan(60)
    const reference = readReference(described, catalogue, services).flatMap(({ operations }) => operations)
    expect(reference).toHaveLength(all.length)
    for (const { id, answerExample } of reference) expect([id, typeof answerExample]).toEqual([id, 'object'])
    for (const { operationId, requestBody } of all) {
      if (requestBody !== undefined)
        expect([operationId, typeof requestBody.content['application/json'].example]).toEqual([
          operationId,
          'object',
        ])
    }
  })

  it('use the tools’ example requests, which match their schemas', () => {
    expect(catalogue.length).toBeGreaterThan(100)
    for (const { tool, input } of catalogue) {
      const needed = Array.isArray(input.required) ? input.required : []
      if (tool.example === undefined) expect([tool.name, needed]).toEqual([tool.name, []])
      else expect([tool.name, tool.input.safeParse(tool.example).success]).toEqual([tool.name, true])
    }
  })

  it.each(failureCodes)('exist for the failure %s', (code) => {
    expect(problemExample(code)).toMatchObject({ code })
  })

  it('follow bounds, choices, variants and references', () => {
    const schema = {
      type: 'object',
      properties: {
        kind: { enum: ['b', 'a'] },
        fixed: { const: 7 },
        id: { type: 'string', description: '`acct_…`' },
        many: { type: 'array', minItems: 2, items: { type: 'integer', minimum: 5 } },
        either: { anyOf: [{ type: 'null' }, { type: 'boolean' }] },
        nextCursor: { type: ['string', 'null'] },
        back: { $ref: '#/properties/many' },
      },
    }
    expect(buildExample(schema)).toEqual({
      kind: 'b',
      fixed: 7,
      id: 'acct_01kag5x0n0e8tr7v3m2c4q6w8y',
      many: [5, 5],
      either: true,
      nextCursor: null,
      back: [5, 5],
    })
  })
})

describe('the failure texts', () => {
  it.each(failureCodes)('explain %s and its remedy in sentences', (code) => {
    const { meaning, remedy, example, members } = failureGuide[code]
    for (const text of [meaning, remedy]) expect(text).toMatch(/^["A-Z].*\.$/s)
    const problem = new Failure(code, example, members).toProblem()
    expect(problem).toMatchObject({ type: `/errors/${code}`, status: failures[code].status })
    const described = Object.keys(problemSchema.properties)
    expect(Object.keys(problemExample(code)).filter((name) => !described.includes(name))).toEqual([])
    // A retryable failure states when, unless it waits for a person or is our own fault.
    if (failures[code].status === 503 || failures[code].status === 429)
      expect([code, typeof members.retryAfter]).toEqual([code, 'number'])
  })

  it('follow an introduction to authentication in the API’s description', () => {
    const { description } = document.info
    for (const part of [
      `curl -s ${origin}/api/wallets -H 'Authorization: Bearer`,
      'bursar agent call',
      `claude mcp add --transport http bursar ${origin}/mcp`,
      `${origin}/errors`,
    ])
      expect(description).toContain(part)
  })
})
