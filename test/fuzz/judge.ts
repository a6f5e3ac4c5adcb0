/** Checks an answer against the document. Returns nothing, or a short description of the error. */
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv'
import { z } from 'zod'
import { type FailureCode, failures } from '../../src/core/failures/failure.ts'
import type { Answer } from './send.ts'
import type { Operation, Shot } from './shots.ts'
import type { Schema } from './values.ts'

/** The limit for any answer, promised in docs/operations.md, in milliseconds. */
const MAX_ANSWER_MS = 10_000

/** JSON-RPC's code for a server error. */
const INTERNAL_ERROR = -32_603

/**
 * Failures of others: no aggregator of the sandbox has a route for every pair and amount, and the hosts of the examples sell
 * nothing. A stablecoin has no rate while another request's price of it is below its peg.
 */
const explained: ReadonlySet<string> = new Set(['no_route', 'seller_failed', 'rates_unavailable'])

/** A stack trace, or a path of this machine. */
const INSIDES = /\bat .{1,80}:\d+:\d+|node_modules|\.build\/|\/src\/[a-z]|SELECT .* FROM|syntax error at/i

const problemShape = z.looseObject({
  code: z.string().refine((code): code is FailureCode => Object.hasOwn(failures, code)),
  status: z.int(),
  requestId: z.string(),
  instance: z.string(),
})

export interface Judge {
  rest(operation: Operation, shot: Shot, answer: Answer): string[]
  tool(name: string, outputSchema: Schema, answer: Answer): string[]
}

/** Compiles the document's schemas. */
export function createJudge(problem: Schema): Judge {
  const validator = new AjvJsonSchemaValidator()
  const checks = new Map<Schema, (value: unknown) => string | null>()
  const check = (schema: Schema, value: unknown): string | null => {
    let found = checks.get(schema)
    if (found === undefined) {
      // The validator's own type for a schema is as loose as JSON.
      const validate = validator.getValidator({ ...schema } as Parameters<typeof validator.getValidator>[0])
      found = (given) => {
        const result = validate(given)
        return result.valid ? null : (result.errorMessage ?? 'invalid')
      }
      checks.set(schema, found)
    }
    return found(value)
  }

  const problemIn = (text: string, status: number): { code: string | null; wrong: string[] } => {
    const parsed = parseText(text)
    const shaped = problemShape.safeParse(parsed)
    if (!shaped.success) return { code: null, wrong: ['not a problem document'] }
    const { code, status: codeStatus } = shaped.data
    const unfit = check(problem, parsed)
    return {
      code,
      wrong: [
        ...(codeStatus === failures[code].status && codeStatus === status
          ? []
          : [`${code} with status ${status}`]),
        ...(unfit === null ? [] : [`problem against its schema: ${unfit.slice(0, 200)}`]),
        ...(INSIDES.test(text) ? ['exposes internals'] : []),
        ...(status >= 500 && !explained.has(code) ? [`${status} ${code}`] : []),
      ],
    }
  }

  const judgeHeaders = ({ headers, ms }: Answer): string[] => [
    ...(headers['x-request-id'] === undefined ? ['no X-Request-Id'] : []),
    ...(headers['cache-control'] === 'no-store' ? [] : ['Cache-Control is not no-store']),
    ...(headers['x-powered-by'] === undefined && headers.server === undefined ? [] : ['names its server']),
    ...(ms > MAX_ANSWER_MS ? [`took ${Math.round(ms)} ms`] : []),
  ]

  return {
    rest({ route, responses }, shot, answer) {
      const { status, text, headers } = answer
      const type = String(headers['content-type'] ?? '')
      const wrong = judgeHeaders(answer)
      if (status === 402) {
        const challenge = responses['402']?.content?.['application/json']?.schema
        if (challenge === undefined) return [...wrong, '402 where nothing is sold']
        const unfit = check(challenge, parseText(text))
        return unfit === null ? wrong : [...wrong, `challenge: ${unfit.slice(0, 200)}`]
      }
      if (status >= 400) {
        const found = problemIn(text, status)
        wrong.push(...found.wrong)
        if (type !== 'application/problem+json') wrong.push(`an error of type ${type}`)
        const isTold =
          responses[String(status)] !== undefined ||
          responses.default?.description.includes(`\`${found.code}\``) === true
        if (shot.isOnPath && !isTold) wrong.push(`${route} does not document ${status} ${found.code}`)
        return wrong
      }
      if (status !== 200) return [...wrong, `status ${status}`]
      if (!shot.isOnPath) return wrong
      if (type.startsWith('text/csv')) return wrong
      if (!type.startsWith('application/json')) return [...wrong, `a success of type ${type}`]
      const schema = responses['200']?.content?.['application/json']?.schema
      const unfit = schema === undefined ? 'no schema' : check(schema, parseText(text))
      return unfit === null ? wrong : [...wrong, `success against its schema: ${unfit.slice(0, 300)}`]
    },

    tool(name, outputSchema, answer) {
      const wrong = judgeHeaders(answer)
      const message = rpc.safeParse(parseText(extractData(answer)))
      if (!message.success && answer.status >= 400)
        return [...wrong, ...problemIn(answer.text, answer.status).wrong]
      // A message without an id is a notification, which has no answer.
      if (answer.status === 202 && answer.text === '') return wrong
      if (!message.success) return [...wrong, `${name}: no JSON-RPC answer`]
      const { error, result } = message.data
      if (error !== undefined && error.code !== INTERNAL_ERROR) return wrong
      if (error !== undefined) return [...wrong, `${name}: error ${error.code}`]
      if (result === undefined) return [...wrong, `${name}: neither result nor error`]
      if (result.isError !== true) {
        const unfit = check(outputSchema, result.structuredContent)
        return unfit === null ? wrong : [...wrong, `${name} against its schema: ${unfit.slice(0, 300)}`]
      }
      const text = result.content?.[0]?.text ?? ''
      const { status } = z.looseObject({ status: z.int() }).catch({ status: 0 }).parse(parseText(text))
      return [...wrong, ...problemIn(text, status).wrong]
    },
  }
}

const rpc = z.looseObject({
  jsonrpc: z.literal('2.0'),
  error: z.looseObject({ code: z.int() }).optional(),
  result: z
    .looseObject({
      isError: z.boolean().optional(),
      structuredContent: z.unknown().optional(),
      content: z.array(z.looseObject({ text: z.string().optional() })).optional(),
    })
    .optional(),
})

/** The message of an answer, which may be an event stream. */
function extractData({ text, headers }: Answer): string {
  if (!String(headers['content-type']).startsWith('text/event-stream')) return text
  return /^data: ?(\{.*)$/m.exec(text)?.[1] ?? text
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
