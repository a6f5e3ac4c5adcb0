/**
 * The tools, resources and prompts of `/mcp`, shared by all protocol eras: the REST tools within the key's scopes.
 * JSON Schemas are converted once, when they are first needed.
 */

import { lazy } from '../src/core/base/lazy.ts'
import { nearestTo } from '../src/core/base/nearest.ts'
import { readTask } from '../src/core/base/task-label.ts'
import { timers } from '../src/core/base/timers.ts'
import { Failure } from '../src/core/failures/failure.ts'
import type { CatalogueEntry } from '../src/kernel/catalogue.ts'
import type { Services } from '../src/kernel/context.ts'
import { countRequest, requireWithinLimit } from '../src/kernel/gates/rate.ts'
import { missingScopes, requireScope } from '../src/kernel/gates/scope.ts'
import { run } from '../src/kernel/run.ts'
import type { Tool } from '../src/kernel/tool.ts'
import type { Seller } from '../src/rails/selling/x402/sale.ts'
import { showDecisions } from '../src/records/decisions/show-decisions.ts'
import { type Buyer, createBuyer } from './buy.ts'
import type { McpCaller } from './caller.ts'
import { splitArguments } from './idempotency-key.ts'
import { type ListedTool, mcpName, toListedTool } from './listed-tool.ts'
import { prompts } from './prompts.ts'
import { protocolError } from './protocol-error.ts'
import { failureResult, type ToolResult, toResult } from './result.ts'
import { advisedInToolTerms, createToolTerms } from './tool-terms.ts'
import { untrustedMembers } from './untrusted-members.ts'
import { readView } from './views.ts'
import { paymentIn } from './x402.ts'

export interface ListedResource {
  readonly uri: string
  readonly name: string
  readonly title: string
  readonly description: string
  readonly mimeType: 'application/json'
}

/** @property _meta names the members that third parties wrote. */
export interface ResourceContent {
  readonly uri: string
  readonly mimeType: string
  readonly text: string
  readonly _meta?: Record<string, unknown>
  readonly [member: string]: unknown
}

/** Protocol errors, such as an unknown name, are thrown with a JSON-RPC `code`. */
export interface Offer {
  /** First parts of the tools’ names, such as `wallets`. */
  readonly rooms: readonly string[]
  tools(caller: McpCaller): ListedTool[]
  /** @param meta request metadata, such as a payment. */
  call(
    caller: McpCaller,
    name: string,
    given: Record<string, unknown>,
    meta?: Readonly<Record<string, unknown>>,
  ): Promise<ToolResult>
  /** @throws Failure `insufficient_scope`. */
  requireScope(caller: McpCaller, name: string): void
  readonly resources: readonly ListedResource[]
  read(caller: McpCaller, uri: string): Promise<ResourceContent>
  readonly prompts: typeof prompts
}

/** Number of decisions in the receipts resource. */
const RECEIPTS = 20

/** @property rateClass rate class as over REST; null for sold tools, whose payments are metered. */
interface ServedTool {
  readonly tool: Tool
  readonly rateClass: string | null
  readonly listed: ListedTool
  /** Result members written by third parties. */
  readonly untrusted: readonly string[]
}

/** Resources: results of tools without arguments, and the key's own receipts. */
const resources = [
  {
    uri: 'bursar://limits',
    name: 'limits',
    title: 'Limits',
    description: 'Your scopes, your spend policy and the budget left today, in USD.',
    mimeType: 'application/json',
    tool: 'context',
  },
  {
    uri: 'bursar://rails',
    name: 'rails',
    title: 'Rails',
    description: 'All rails for moving money, with status, limits and fees.',
    mimeType: 'application/json',
    tool: 'rails_list',
  },
  {
    uri: 'bursar://receipts',
    name: 'receipts',
    title: 'Receipts',
    description: `The last ${RECEIPTS} decisions on your spends, with signed receipts.`,
    mimeType: 'application/json',
    tool: null,
  },
] as const

export function createOffer(catalogue: readonly CatalogueEntry[], services: Services, seller: Seller): Offer {
  const inToolTerms = createToolTerms(catalogue)
  const served = new Map(
    catalogue
      .filter(({ tool }) => tool.mcp)
      .map((entry) => {
        const untrusted = lazy(() => untrustedMembers(entry.output))
        const listed = lazy(() => toListedTool(entry, untrusted(), inToolTerms))
        // MCP has no unauthenticated callers: public sold tools are paid by the key's owner.
        const isSold = entry.tool.who === 'public' && entry.tool.effect === 'spend'
        const rateClass = isSold ? null : (entry.tool.rate ?? null)
        const serving: ServedTool = {
          tool: { ...entry.tool, who: 'account' },
          rateClass,
          get listed() {
            return listed()
          },
          get untrusted() {
            return untrusted()
          },
        }
        return [mcpName(entry.tool), serving] as const
      }),
  )

  const buyer = createBuyer(services, seller)
  const call: Offer['call'] = async (caller, name, given, meta) => {
    const found = served.get(name)
    if (found === undefined || !isOffered(caller, name)) {
      const nearest = nearestTo(
        name.slice(0, 64),
        [...served.keys()].filter((one) => isOffered(caller, one)),
      )
      const meant = nearest === null ? '' : ` Did you mean ${nearest}?`
      throw protocolError(`Unknown tool "${name.slice(0, 64)}".${meant} tools/list returns all tools.`)
    }
    const { tool, untrusted } = found
    const isWrite = tool.effect !== 'read'
    const startedAt = timers.monotonic()
    const recordOutcome = (outcome: string, decisionId: string | null | undefined) => {
      const seconds = (timers.monotonic() - startedAt) / 1_000
      services.metrics.mcpCall({ tool: name, outcome, seconds })
      const { requestId } = caller
      services.log.info(
        { requestId, tool: name, outcome, ...(decisionId ? { decisionId } : {}) },
        'tool call',
      )
    }
    return services.tracing.span('mcp call', { 'mcp.tool.name': name }, async () => {
      let sold: Parameters<Buyer['terms']>[0] | null = null
      let decidedBy: string | null = null
      try {
        requireScope(tool, caller.principal)
        const { input, idempotencyKey } = splitArguments(tool, given)
        const byOwner = async () => {
          await count(found, caller)
          const task = readTask(meta?.['bursar/task'], '_meta.bursar/task')
          const facts = callFacts(services, caller, { idempotencyKey, task })
          const { body, decisionId, replayed } = await run(tool, facts, input)
          decidedBy = decisionId
          const inTerms = advisedInToolTerms(body, inToolTerms, tool.verbatim)
          return toResult(inTerms, { untrusted, replayed: isWrite ? replayed : null })
        }
        if (tool.isSold && idempotencyKey !== null) sold = { tool, caller, input, idempotencyKey }
        const result = sold === null ? await byOwner() : await buyer.buy(sold, paymentIn(meta), byOwner)
        recordOutcome(result.isError === true ? 'payment_required' : 'ok', decidedBy)
        return result
      } catch (error) {
        const failure = error instanceof Failure ? error : null
        if (failure?.code === 'rate_limited') await caller.refundCounts()
        recordOutcome(failure?.code ?? 'internal', failure?.members.decisionId)
        const terms = sold !== null && isUnpaid(error) ? await buyer.terms(sold) : {}
        return failureResult(error, {
          requestId: caller.requestId,
          name,
          log: services.log,
          terms,
          isWrite,
          inToolTerms,
        })
      }
    })
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

  async function readContent(caller: McpCaller, resource: (typeof resources)[number]): Promise<unknown> {
    if (resource.tool === null) {
      const { account, key } = caller.principal
      const page = { limit: RECEIPTS, after: null }
      const { decisions } = await showDecisions(services, {
        accountId: account.id,
        keyId: key.id,
        verdict: null,
        id: null,
        object: null,
        page,
      })
      return { decisions }
    }
    // Resources are offered with every set of tools.
    const { structuredContent, content } = await call({ ...caller, toolsets: null }, resource.tool, {})
    return structuredContent ?? JSON.parse(content[0].text)
  }

  return {
    rooms: [...new Set([...served.keys()].map(extractRoom))].sort(),
    tools: (caller) =>
      [...served.values()]
        .filter(({ listed }) => isOffered(caller, listed.name))
        .filter(({ tool }) => missingScopes(tool, caller.principal).length === 0)
        .map(({ listed }) => listed),
    call,
    requireScope: (caller, name) => {
      const found = isOffered(caller, name) ? served.get(name) : undefined
      if (found !== undefined) requireScope(found.tool, caller.principal)
    },
    resources: resources.map(({ tool: _tool, ...listed }) => listed),
    async read(caller, uri) {
      const { origin, webOrigins } = services.settings
      const view = await readView(uri, webOrigins[0] ?? origin)
      if (view !== null) return view
      const resource = resources.find((one) => one.uri === uri)
      if (resource === undefined)
        throw protocolError(`Unknown resource "${uri.slice(0, 64)}"; resources/list returns all resources.`, {
          uri: uri.slice(0, 2_000),
        })
      const { mimeType } = resource
      const untrusted = served.get(resource.tool ?? 'agents_decisions')?.untrusted ?? []
      return {
        uri,
        mimeType,
        text: JSON.stringify(await readContent(caller, resource)),
        ...(untrusted.length === 0 ? {} : { _meta: { 'bursar/untrusted': untrusted } }),
      }
    },
    prompts,
  }
}

/** Members written out before the one spread: beside another spread, or after this one, each takes as long as all others. */
function callFacts(
  services: Services,
  { principal, requestId, clientAddress, now }: McpCaller,
  { idempotencyKey, task }: { idempotencyKey: string | null; task: string | null },
) {
  return { principal, requestId, clientAddress, now, idempotencyKey, task, ...services }
}

/** The room of a tool: the first part of its name. */
function extractRoom(name: string): string {
  return name.split('_')[0] ?? name
}

function isOffered({ toolsets }: McpCaller, name: string): boolean {
  return toolsets === null || toolsets.has(extractRoom(name))
}

/** True if the owner's money was refused, so that a caller with its own wallet may still pay. */
function isUnpaid(error: unknown): boolean {
  return error instanceof Failure && ['policy_denied', 'insufficient_funds'].includes(error.code)
}
