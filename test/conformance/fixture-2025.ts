/** The suite's fixture for clients of the 2025 era, on top of the composed server and its tools. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  CreateMessageResultSchema,
  ElicitResultSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  type ServerNotification,
  type ServerRequest,
  SetLevelRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import type { Registrations } from '../../mcp/http.ts'
import {
  buildContent,
  buildPrompt,
  findPlainResult,
  listTools,
  plainTools,
  prompts,
  resources,
  templates,
  textResult,
} from './content.ts'

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>
type Properties = Extract<
  Extract<ServerRequest, { method: 'elicitation/create' }>['params'],
  { requestedSchema: unknown }
>['requestedSchema']['properties']

const defaults: Properties = {
  name: { type: 'string', description: 'User name', default: 'John Doe' },
  age: { type: 'integer', description: 'User age', default: 30 },
  score: { type: 'number', description: 'User score', default: 95.5 },
  status: {
    type: 'string',
    description: 'User status',
    enum: ['active', 'inactive', 'pending'],
    default: 'active',
  },
  verified: { type: 'boolean', description: 'Verification status', default: true },
}
const toTitled = (ordinals: readonly string[]) =>
  ordinals.map((title, at) => ({ const: `value${at + 1}`, title }))
const enums: Properties = {
  untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
  titledSingle: { type: 'string', oneOf: toTitled(['First Option', 'Second Option', 'Third Option']) },
  legacyEnum: {
    type: 'string',
    enum: ['opt1', 'opt2', 'opt3'],
    enumNames: ['Option One', 'Option Two', 'Option Three'],
  },
  untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
  titledMulti: {
    type: 'array',
    items: { anyOf: toTitled(['First Choice', 'Second Choice', 'Third Choice']) },
  },
}

async function elicit(extra: Extra, message: string, properties: Properties) {
  const requestedSchema = { type: 'object' as const, properties }
  const question = { method: 'elicitation/create' as const, params: { message, requestedSchema } }
  const { action, content } = await extra.sendRequest(question, ElicitResultSchema)
  return textResult(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`)
}

async function log(extra: Extra, words: readonly string[]) {
  for (const data of words) {
    await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data } })
    await pause(50)
  }
  return textResult('Tool with logging executed successfully')
}

async function progress(extra: Extra) {
  const progressToken = extra._meta?.progressToken
  for (const done of [0, 50, 100]) {
    if (progressToken !== undefined)
      await extra.sendNotification({
        method: 'notifications/progress',
        params: { progressToken, progress: done, total: 100 },
      })
    await pause(50)
  }
  return textResult('Tool with progress executed successfully')
}

async function sample(extra: Extra, prompt: string) {
  const content = { type: 'text' as const, text: prompt }
  const question = {
    method: 'sampling/createMessage' as const,
    params: { messages: [{ role: 'user' as const, content }], maxTokens: 100 },
  }
  const answer = await extra.sendRequest(question, CreateMessageResultSchema)
  return textResult(`LLM response: ${JSON.stringify(answer.content)}`)
}

const given = z.looseObject({ prompt: z.string().default(''), message: z.string().default('') })

/** Tools that call back to their client while they run. */
const talking: Readonly<
  Record<
    string,
    (extra: Extra, given: { prompt: string; message: string }) => Promise<ReturnType<typeof textResult>>
  >
> = {
  test_tool_with_logging: (extra) =>
    log(extra, ['Tool execution started', 'Tool processing data', 'Tool execution completed']),
  test_tool_with_progress: progress,
  test_sampling: (extra, { prompt }) => sample(extra, prompt),
  test_elicitation: (extra, { message }) =>
    elicit(extra, message, {
      username: { type: 'string', description: 'User’s response' },
      email: { type: 'string', description: 'User’s email address' },
    }),
  test_elicitation_sep1034_defaults: (extra) =>
    elicit(extra, 'Please review and update the form fields with defaults', defaults),
  test_elicitation_sep1330_enums: (extra) =>
    elicit(extra, 'Please select options from the enum fields', enums),
}

const fixtureTools = listTools([...Object.keys(plainTools), ...Object.keys(talking)])

/** Adds the fixture. Requests outside it are answered by the product. */
export const on2025: Registrations['on2025'] = (server: Server, { offer, caller }) => {
  server.registerCapabilities({ logging: {}, completions: {}, resources: { subscribe: true } })
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [...offer.tools(caller), ...fixtureTools],
  }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const { name, arguments: raw = {} } = params
    const talk = talking[name]
    if (talk !== undefined) return talk(extra, given.parse(raw))
    return findPlainResult(name) ?? offer.call(caller, name, raw)
  })
  server.setRequestHandler(ListResourcesRequestSchema, () => ({
    resources: [...resources, ...offer.resources],
  }))
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: templates }))
  server.setRequestHandler(ReadResourceRequestSchema, async ({ params: { uri } }) => ({
    contents: [buildContent(uri) ?? (await offer.read(caller, uri))],
  }))
  server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts }))
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => {
    const prompt = buildPrompt(params.name, params.arguments ?? {})
    if (prompt === undefined) throw new Error('the suite asks for its own prompts')
    return prompt
  })
  server.setRequestHandler(CompleteRequestSchema, () => ({ completion: { values: [], total: 0 } }))
  for (const schema of [SetLevelRequestSchema, SubscribeRequestSchema, UnsubscribeRequestSchema])
    server.setRequestHandler(schema, () => ({}))
}
