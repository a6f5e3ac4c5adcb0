/** Requests whose parameters have the wrong shape, in words: the SDKs would answer an internal error with their schemas' own. */
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
const takes = {
  initialize: '{protocolVersion, capabilities, clientInfo: {name, version}}',
  'tools/call': '{name, arguments}: a text and an object',
  'prompts/get': '{name, arguments}: a text and an object of texts',
  'resources/read': '{uri}: a text',
  'tools/list': '{cursor}: a text, or none',
  'resources/list': '{cursor}: a text, or none',
  'resources/templates/list': '{cursor}: a text, or none',
  'prompts/list': '{cursor}: a text, or none',
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
 * What such a request is told; null where it is none. Any other method takes nothing that could be wrong, and 2026 has no
 * `initialize`.
 */
export function malformed(message: unknown, { era }: { era: '2025' | '2026' }): object | null {
  const { data } = request.safeParse(message)
  if (data === undefined || (era === '2026' && data.method === 'initialize')) return null
  if (shapes[data.method].safeParse(data.params).success) return null
  const { code, message: why } = protocolError(`${data.method} takes params ${takes[data.method]}.`)
  return { jsonrpc: '2.0', id: data.id, error: { code, message: why } }
}
