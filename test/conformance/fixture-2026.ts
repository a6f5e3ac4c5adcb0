/** The suite's fixture for clients of the 2026 era, on top of the composed server and its tools. */
import { setTimeout as pause } from 'node:timers/promises'
import {
  createRequestStateCodec,
  inputRequired,
  MissingRequiredClientCapabilityError,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { Registrations } from '../../mcp/http.ts'
import { protocolError } from '../../mcp/protocol-error.ts'
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

const states = createRequestStateCodec<{ round: number }>({
  key: 'the signing secret of the conformance fixture alone',
})
const form = (message: string, name: string, type: 'string' | 'boolean') => {
  const field = type === 'string' ? { type: 'string' as const } : { type: 'boolean' as const }
  const requestedSchema = { type: 'object' as const, properties: { [name]: field }, required: [name] }
  return inputRequired.elicit({ message, requestedSchema })
}
const sampling = (text: string, maxTokens: number) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens })
const userName = () => form('What is your name?', 'name', 'string')

type Round = Awaited<ReturnType<typeof inputRequired>> | ReturnType<typeof textResult>

/** The round of a call, read from its echoed state. @throws the protocol's error for a foreign state. */
async function readRound(context: ServerContext): Promise<number> {
  const state = context.mcpReq.requestState()
  if (state === undefined) return 0
  if (typeof state !== 'string') throw protocolError('The requestState is not a string.')
  try {
    return (await states.verify(state, context)).round
  } catch {
    throw protocolError('The requestState was changed.')
  }
}

const isAnswered = ({ mcpReq: { inputResponses } }: ServerContext, name: string) =>
  z.looseObject({ action: z.literal('accept') }).safeParse(inputResponses?.[name]).success
const has = ({ mcpReq: { inputResponses } }: ServerContext, name: string) =>
  inputResponses?.[name] !== undefined

/** Requests input in the first round, with a signed state. */
async function confirmRound(context: ServerContext): Promise<Round> {
  const round = await readRound(context)
  if (round === 1 && isAnswered(context, 'confirm')) return textResult('state-ok')
  return inputRequired({
    inputRequests: { confirm: form('Please confirm', 'ok', 'boolean') },
    requestState: await states.mint({ round: 1 }, context),
  })
}

/** Tools that answer in rounds. */
const rounds: Readonly<Record<string, (context: ServerContext) => Promise<Round>>> = {
  test_input_required_result_elicitation: async (context) =>
    isAnswered(context, 'user_name')
      ? textResult('Hello!')
      : inputRequired({ inputRequests: { user_name: userName() } }),
  test_input_required_result_sampling: async (context) =>
    has(context, 'capital_question')
      ? textResult(JSON.stringify(context.mcpReq.inputResponses?.capital_question))
      : inputRequired({
          inputRequests: { capital_question: sampling('What is the capital of France?', 100) },
        }),
  test_input_required_result_list_roots: async (context) =>
    has(context, 'client_roots')
      ? textResult(JSON.stringify(context.mcpReq.inputResponses?.client_roots))
      : inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } }),
  test_input_required_result_request_state: confirmRound,
  test_input_required_result_tampered_state: confirmRound,
  test_input_required_result_multiple_inputs: async (context) =>
    (await readRound(context)) === 1 &&
    ['user_name', 'greeting', 'client_roots'].every((name) => has(context, name))
      ? textResult('All three were answered.')
      : inputRequired({
          inputRequests: {
            user_name: userName(),
            greeting: sampling('Generate a greeting', 50),
            client_roots: inputRequired.listRoots(),
          },
          requestState: await states.mint({ round: 1 }, context),
        }),
  test_input_required_result_multi_round: async (context) => {
    const round = await readRound(context)
    if (round === 2 && isAnswered(context, 'step2')) return textResult('Both steps were answered.')
    const next = round === 1 && isAnswered(context, 'step1') ? 2 : 1
    const question =
      next === 1
        ? form('Step 1: What is your name?', 'name', 'string')
        : form('Step 2: What is your favorite color?', 'color', 'string')
    return inputRequired({
      inputRequests: { [`step${next}`]: question },
      requestState: await states.mint({ round: next }, context),
    })
  },
  test_input_required_result_capabilities: async (context) => {
    const { envelope } = context.mcpReq
    const can = z
      .record(z.string(), z.unknown())
      .parse(envelope?.['io.modelcontextprotocol/clientCapabilities' as never])
    return inputRequired({
      inputRequests: {
        ...(can.sampling === undefined ? {} : { question: sampling('What can you do?', 50) }),
        ...(can.elicitation === undefined ? {} : { user_name: userName() }),
      },
    })
  },
  test_streaming_elicitation: async () => inputRequired({ inputRequests: { user_name: userName() } }),
}

/** Tools that send notifications before they answer, or need a capability. */
const sending: Readonly<
  Record<
    string,
    (context: ServerContext, notifier: Parameters<Registrations['on2026']>[1]['notifier']) => Promise<Round>
  >
> = {
  test_tool_with_progress: async ({ mcpReq: { _meta, notify } }) => {
    const progressToken = _meta?.progressToken
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } })
      await pause(50)
    }
    return textResult('Tool with progress executed successfully')
  },
  test_logging_tool: async ({ mcpReq }) => {
    await mcpReq.log('info', 'Only those who asked for it see this.')
    return textResult('Logged.')
  },
  test_missing_capability: async () => {
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } })
  },
  test_trigger_tool_change: async (_context, notifier) => {
    notifier.toolsChanged()
    return textResult('The tools have changed.')
  },
  test_trigger_prompt_change: async (_context, notifier) => {
    notifier.promptsChanged()
    return textResult('The prompts have changed.')
  },
}

const fixtureTools = listTools([...Object.keys(plainTools), ...Object.keys(rounds), ...Object.keys(sending)])
const cached = { ttlMs: 1_000, cacheScope: 'private' } as const

/** Adds the fixture. Requests outside it are answered by the product. */
export const on2026: Registrations['on2026'] = (server, { offer, caller, notifier }) => {
  server.registerCapabilities({
    logging: {},
    completions: {},
    tools: { listChanged: true },
    prompts: { listChanged: true },
  })
  server.setRequestHandler('tools/list', () => ({
    tools: [...offer.tools(caller), ...fixtureTools],
    ...cached,
  }))
  server.setRequestHandler('tools/call', async ({ params: { name, arguments: given = {} } }, context) => {
    const inRounds = rounds[name]
    if (inRounds !== undefined) return inRounds(context)
    const send = sending[name]
    if (send !== undefined) return send(context, notifier)
    return findPlainResult(name) ?? offer.call(caller, name, given)
  })
  server.setRequestHandler('resources/list', () => ({
    resources: [...resources, ...offer.resources],
    ...cached,
  }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: templates, ...cached }))
  server.setRequestHandler('resources/read', async ({ params: { uri } }) => ({
    contents: [buildContent(uri) ?? (await offer.read(caller, uri))],
    ...cached,
  }))
  const promptingFixture = {
    name: 'test_input_required_result_prompt',
    description: 'A prompt that asks.',
    arguments: [],
  }
  server.setRequestHandler('prompts/list', () => ({ prompts: [...prompts, promptingFixture], ...cached }))
  server.setRequestHandler('prompts/get', ({ params: { name, arguments: given = {} } }, context) => {
    if (name === promptingFixture.name)
      return isAnswered(context, 'user_context')
        ? { messages: [{ role: 'user' as const, content: { type: 'text' as const, text: 'Thank you.' } }] }
        : inputRequired({ inputRequests: { user_context: form('What is it about?', 'context', 'string') } })
    const prompt = buildPrompt(name, given)
    if (prompt === undefined) throw protocolError('The suite asks for its own prompts.')
    return prompt
  })
  server.setRequestHandler('completion/complete', () => ({ completion: { values: [], total: 0 } }))
}
