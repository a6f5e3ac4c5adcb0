/**
 * Rejects malformed parameters with readable errors; the SDKs would return an internal error with raw schema issues.
 */
import { z } from 'zod'
import { protocolError } from './protocol-error.ts'

const text = z.string()
const page = z.looseObject({ cursor: text.optional() }).optional()
const shapes = {
  initialize: z.looseObject({
    protocolVersion: text,
    capabilities: z.looseObject({}),
    clientInfo: z.looseObject({ name: text, version: text }),
  }),
  'tools/call': z.looseObject({ name: text, arguments: z.looseObject({}).optional() }),
  'prompts/get': z.looseObject({ name: text, arguments: z.record(text, text).optional() }),
  'resources/read': z.looseObject({ uri: text }),
  'tools/list': page,
  'resources/list': page,
  'resources/templates/list': page,
  'prompts/list': page,
}
const expectedParams = {
  initialize: '{protocolVersion, capabilities, clientInfo: {name, version}}',
  'tools/call': '{name, arguments}: a string and an object',
  'prompts/get': '{name, arguments}: a string and an object of strings',
  'resources/read': '{uri}: a string',
  'tools/list': '{cursor}: an optional string',
  'resources/list': '{cursor}: an optional string',
  'resources/templates/list': '{cursor}: an optional string',
  'prompts/list': '{cursor}: an optional string',
} as const satisfies Record<keyof typeof shapes, string>

const request = z.looseObject({
  id: z.union([text, z.number()]),
  method: z.enum([
    'initialize',
    'tools/call',
    'prompts/get',
    'resources/read',
    'tools/list',
    'resources/list',
    'resources/templates/list',
    'prompts/list',
  ]),
  params: z.unknown().optional(),
})

/**
 * Returns the error response for a malformed request, or null. Other methods have no parameters to check, and 2026
 * has no `initialize`.
 */
export function refuseMalformed(message: unknown, { era }: { era: '2025' | '2026' }): object | null {
  const { data } = request.safeParse(message)
  if (data === undefined || (era === '2026' && data.method === 'initialize')) return null
  if (shapes[data.method].safeParse(data.params).success) return null
  const { code, message: detail } = protocolError(
    `${data.method} takes params ${expectedParams[data.method]}.`,
  )
  return { jsonrpc: '2.0', id: data.id, error: { code, message: detail } }
}
