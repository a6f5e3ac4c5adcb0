/**
 * What `/mcp` offers, whatever era of the protocol asks: the same tools as REST as far as the key's scopes reach, what an
 * agent reads before it spends, and prompts. JSON Schemas were converted once at start.
 */
import { showDecisions } from '../src/audit/show-decisions.ts'
import { Failure } from '../src/failure.ts'
import type { CatalogueEntry } from '../src/kernel/catalogue.ts'
import type { Services } from '../src/kernel/context.ts'
import { requireRail } from '../src/kernel/gates/rail.ts'
import { countRequest, requireWithinLimit } from '../src/kernel/gates/rate.ts'
import { missingScopes, requireScope } from '../src/kernel/gates/scope.ts'
import { run } from '../src/kernel/run.ts'
import type { Tool } from '../src/kernel/tool.ts'
import type { Principal } from '../src/principal.ts'
import { foreignMembers, foreignNote } from './foreign-members.ts'
import { prompts } from './prompts.ts'
import { protocolError } from './protocol-error.ts'
import { failureResult, resultOf, type ToolResult } from './result.ts'
import { type Purchase, paymentIn, type Seller, sellFor, termsFor } from './x402.ts'

/** Who calls, and when. */
export interface McpCaller {
  readonly principal: Extract<Principal, { kind: 'key' }>
  readonly requestId: string
  readonly now: Date
  readonly clientAddress: string
}

/** A tool as clients see it. */
export interface ListedTool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: JsonObjectSchema
  readonly outputSchema: JsonObjectSchema
  readonly annotations: {
    readonly title: string
    readonly readOnlyHint: boolean
    readonly destructiveHint: boolean
    readonly idempotentHint: boolean
    readonly openWorldHint: boolean
  }
}

/** A JSON Schema of an object. */
export type JsonObjectSchema = { type: 'object'; [keyword: string]: unknown }

/** A resource as clients see it. */
export interface ListedResource {
  readonly uri: string
  readonly name: string
  readonly title: string
  readonly description: string
  readonly mimeType: 'application/json'
}

/** The offer. Failures of the protocol, such as an unknown name, are thrown with a JSON-RPC `code`. */
export interface Offer {
  tools(caller: McpCaller): ListedTool[]
  /** @param meta what came beside the arguments, such as a payment. */
  call(
    caller: McpCaller,
    name: string,
    given: Record<string, unknown>,
    meta?: Readonly<Record<string, unknown>>,
  ): Promise<ToolResult>
  /** @throws Failure `insufficient_scope` where the caller may not call the tool. */
  requireScope(caller: McpCaller['principal'], name: string): void
  readonly resources: readonly ListedResource[]
  read(caller: McpCaller, uri: string): Promise<{ uri: string; mimeType: string; text: string }>
  readonly prompts: typeof prompts
}

/** How many decisions the resource of receipts shows. */
const RECEIPTS = 20

/** @property rateClass its own limit, as over REST; null for what is sold, which is metered by its payment. */
interface ServedTool {
  readonly tool: Tool
  readonly rateClass: string | null
  readonly listed: ListedTool
  /** Members of the answer that third parties wrote. */
  readonly foreign: readonly string[]
}

/** What an agent reads: the answers of tools that need no arguments, and its own receipts. */
const resources = [
  {
    uri: 'bursar://limits',
    name: 'limits',
    title: 'Limits',
    description: 'Your scopes, your spend policy and what is left of it today, in USD.',
    mimeType: 'application/json',
    tool: 'context',
  },
  {
    uri: 'bursar://rails',
    name: 'rails',
    title: 'Rails',
    description: 'Every way of moving money: whether it is on, its limits and its fees.',
    mimeType: 'application/json',
    tool: 'rails_list',
  },
  {
    uri: 'bursar://receipts',
    name: 'receipts',
    title: 'Receipts',
    description: `The last ${RECEIPTS} decisions on your spends, each with its signed receipt.`,
    mimeType: 'application/json',
    tool: null,
  },
] as const

/** Prepares the offer, once. */
export function createOffer(catalogue: readonly CatalogueEntry[], services: Services, seller: Seller): Offer {
  const served = new Map(
    catalogue
      .filter(({ tool }) => tool.mcp)
      .map((entry) => {
        const foreign = foreignMembers(entry.output)
        const listed = listedAs(entry, foreign)
        // Over MCP there are no strangers: what REST sells to anybody is here paid by the key's owner.
        const isSold = entry.tool.who === 'public' && entry.tool.effect === 'spend'
        const rateClass = isSold ? null : (entry.tool.rate ?? null)
        const serving: ServedTool = { tool: { ...entry.tool, who: 'account' }, rateClass, listed, foreign }
        return [listed.name, serving] as const
      }),
  )

  const call: Offer['call'] = async (caller, name, given, meta) => {
    const found = served.get(name)
    if (found === undefined)
      throw protocolError(`There is no tool "${name.slice(0, 64)}"; tools/list shows them.`)
    const { tool, foreign } = found
    const payment = tool.isSold ? paymentIn(meta) : undefined
    const startedAt = performance.now()
    const told = (outcome: string, decisionId: string | null | undefined) => {
      const seconds = (performance.now() - startedAt) / 1_000
      services.metrics.mcpCall({ tool: name, outcome, seconds })
      const { requestId } = caller
      services.log.info(
        { requestId, tool: name, outcome, ...(decisionId ? { decisionId } : {}) },
        'tool call',
      )
    }
    return services.tracing.span('mcp call', { 'mcp.tool.name': name }, async () => {
      try {
        if (payment !== undefined) {
          const sold = await sellFor(seller, payment, await purchaseOf(found, caller, given))
          told(sold.isError === true ? 'payment_required' : 'ok', null)
          return sold
        }
        const { input, idempotencyKey } = splitArguments(tool, given)
        await count(found, caller)
        const { body, decisionId } = await run(tool, { ...services, ...caller, idempotencyKey }, input)
        told('ok', decisionId)
        return resultOf(body, foreign)
      } catch (error) {
        const failure = error instanceof Failure ? error : null
        told(failure?.code ?? 'internal', failure?.members.decisionId)
        const terms = tool.isSold && isUnpaid(error) ? await termsOf(found, caller, given) : {}
        return failureResult(error, { requestId: caller.requestId, name, log: services.log, terms })
      }
    })
  }

  /** What a tool sells, for the caller's own money: what REST sells to anybody. */
  async function purchaseOf(
    { tool }: ServedTool,
    caller: McpCaller,
    given: Record<string, unknown>,
  ): Promise<Purchase> {
    requireScope(tool, caller.principal)
    const { idempotency_key: _, ...input } = given
    const { sell } = tool.decode(input)
    if (sell === null) throw new Error(`${tool.name} is not for sale`)
    await requireRail(tool, services)
    const context = { ...services, ...caller, idempotencyKey: null, afterCommit: () => {} }
    return { route: tool.route, given: input, deliver: () => sell(context) }
  }

  /** How to pay for what the owner does not; nothing where it cannot be bought at the moment. */
  async function termsOf(found: ServedTool, caller: McpCaller, given: Record<string, unknown>) {
    return purchaseOf(found, caller, given)
      .then((purchase) => termsFor(seller, purchase))
      .catch(() => ({}))
  }

  async function count(
    { tool, rateClass }: ServedTool,
    { clientAddress: client, now }: McpCaller,
  ): Promise<void> {
    if (rateClass === null) return
    const failClosed = tool.effect === 'spend'
    const reading = await countRequest(services, { rateClass, client, now, failClosed })
    if (reading !== null) requireWithinLimit(reading)
  }

  async function contentOf(caller: McpCaller, resource: (typeof resources)[number]): Promise<unknown> {
    if (resource.tool === null) {
      const { account, key } = caller.principal
      const page = { limit: RECEIPTS, after: null }
      const { decisions } = await showDecisions(services, {
        accountId: account.id,
        keyId: key.id,
        verdict: null,
        page,
      })
      return { decisions }
    }
    const { structuredContent, content } = await call(caller, resource.tool, {})
    return structuredContent ?? JSON.parse(content[0].text)
  }

  return {
    tools: ({ principal }) =>
      [...served.values()]
        .filter(({ tool }) => missingScopes(tool, principal).length === 0)
        .map(({ listed }) => listed),
    call,
    requireScope: (principal, name) => {
      const found = served.get(name)
      if (found !== undefined) requireScope(found.tool, principal)
    },
    resources: resources.map(({ tool: _tool, ...listed }) => listed),
    async read(caller, uri) {
      const resource = resources.find((one) => one.uri === uri)
      if (resource === undefined)
        throw protocolError(`There is no resource "${uri.slice(0, 64)}"; resources/list shows them.`, {
          uri: uri.slice(0, 2_000),
        })
      const { mimeType } = resource
      return { uri, mimeType, text: JSON.stringify(await contentOf(caller, resource)) }
    },
    prompts,
  }
}

/** Whether the owner's money was refused, so that a caller with a wallet of its own may still buy. */
function isUnpaid(error: unknown): boolean {
  return error instanceof Failure && ['policy_denied', 'insufficient_funds'].includes(error.code)
}

/** How a tool is listed: annotations follow from its effect. */
function listedAs({ tool, input, output }: CatalogueEntry, foreign: readonly string[]): ListedTool {
  const { properties, required, ...rest } = input
  const isSpend = tool.effect === 'spend'
  const members = { ...asRecord(properties), ...(isSpend ? { idempotency_key: idempotencyKeySchema } : {}) }
  const needed = [...asNames(required), ...(isSpend ? ['idempotency_key'] : [])]
  return {
    name: tool.name.replaceAll('.', '_'),
    title: tool.title,
    description: [tool.summary, tool.description ?? []].flat().join(' ') + foreignNote(foreign),
    inputSchema: {
      ...rest,
      type: 'object',
      properties: members,
      ...(needed.length > 0 ? { required: needed } : {}),
    },
    outputSchema: { ...output, type: 'object' },
    annotations: {
      title: tool.title,
      readOnlyHint: tool.effect === 'read',
      destructiveHint: isSpend,
      idempotentHint: true,
      openWorldHint: isSpend,
    },
  }
}

const idempotencyKeySchema = {
  type: 'string',
  minLength: 1,
  maxLength: 255,
  pattern: '^[\\x21-\\x7e]+$',
  description:
    'Names this payment: a new key for a new payment, the same key when you repeat a call. Never pays twice.',
}

function splitArguments(tool: Tool, given: Record<string, unknown>) {
  if (tool.effect !== 'spend') return { input: given, idempotencyKey: null }
  const { idempotency_key: key, ...input } = given
  if (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key)) return { input, idempotencyKey: key }
  const message = key === undefined ? 'is required' : 'must be 1 to 255 visible ASCII characters'
  throw new Failure('invalid_request', `idempotency_key: ${message}`, {
    issues: [{ path: 'idempotency_key', message }],
    hint: 'Give each new payment a new idempotency_key, and repeat a call with the same one.',
  })
}

function asRecord(value: unknown): Record<string, object> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function asNames(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : []
}
