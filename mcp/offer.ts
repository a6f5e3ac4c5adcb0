/**
 * What `/mcp` offers, whatever era of the protocol asks: the same tools as REST as far as the key's scopes reach, what an
 * agent reads before it spends, and prompts. JSON Schemas were converted once at start.
 */

import { showDecisions } from '../src/audit/show-decisions.ts'
import { Failure } from '../src/failures/failure.ts'
import type { CatalogueEntry } from '../src/kernel/catalogue.ts'
import type { Services } from '../src/kernel/context.ts'
import { countRequest, requireWithinLimit } from '../src/kernel/gates/rate.ts'
import { missingScopes, requireScope } from '../src/kernel/gates/scope.ts'
import { run } from '../src/kernel/run.ts'
import type { Tool } from '../src/kernel/tool.ts'
import type { Seller } from '../src/x402/sale.ts'
import { type Buyer, createBuyer } from './buy.ts'
import type { McpCaller } from './caller.ts'
import { splitArguments } from './idempotency-key.ts'
import { type ListedTool, listedAs } from './listed-tool.ts'
import { prompts } from './prompts.ts'
import { protocolError } from './protocol-error.ts'
import { failureResult, resultOf, type ToolResult } from './result.ts'
import { createToolTerms } from './tool-terms.ts'
import { untrustedMembers } from './untrusted-members.ts'
import { paymentIn } from './x402.ts'

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
  const inToolTerms = createToolTerms(catalogue)
  const served = new Map(
    catalogue
      .filter(({ tool }) => tool.mcp)
      .map((entry) => {
        const foreign = untrustedMembers(entry.output)
        const listed = listedAs(entry, foreign, inToolTerms)
        // Over MCP there are no strangers: what REST sells to anybody is here paid by the key's owner.
        const isSold = entry.tool.who === 'public' && entry.tool.effect === 'spend'
        const rateClass = isSold ? null : (entry.tool.rate ?? null)
        const serving: ServedTool = { tool: { ...entry.tool, who: 'account' }, rateClass, listed, foreign }
        return [listed.name, serving] as const
      }),
  )

  const buyer = createBuyer(services, seller)
  const call: Offer['call'] = async (caller, name, given, meta) => {
    const found = served.get(name)
    if (found === undefined)
      throw protocolError(`There is no tool "${name.slice(0, 64)}"; tools/list shows them.`)
    const { tool, foreign } = found
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
      let sold: Parameters<Buyer['terms']>[0] | null = null
      let decidedBy: string | null = null
      try {
        const { input, idempotencyKey } = splitArguments(tool, given)
        const byOwner = async () => {
          await count(found, caller)
          const { body, decisionId } = await run(tool, { ...services, ...caller, idempotencyKey }, input)
          decidedBy = decisionId
          return resultOf(body, foreign)
        }
        if (tool.isSold && idempotencyKey !== null) sold = { tool, caller, input, idempotencyKey }
        const result = sold === null ? await byOwner() : await buyer.buy(sold, paymentIn(meta), byOwner)
        told(result.isError === true ? 'payment_required' : 'ok', decidedBy)
        return result
      } catch (error) {
        const failure = error instanceof Failure ? error : null
        told(failure?.code ?? 'internal', failure?.members.decisionId)
        const terms = sold !== null && isUnpaid(error) ? await buyer.terms(sold) : {}
        return failureResult(error, {
          requestId: caller.requestId,
          name,
          log: services.log,
          terms,
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
