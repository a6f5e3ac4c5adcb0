/**
 * Buys sold tools over MCP with the owner's money or the caller's own payment. One idempotency key buys once,
 * whichever pays; a repeated call returns the purchase or its state.
 */

import { buildViolation } from '../policies/decision.ts'
import { Failure } from '../src/core/failures/failure.ts'
import type { Services } from '../src/kernel/context.ts'
import { requireRail } from '../src/kernel/gates/rail.ts'
import { requireScope } from '../src/kernel/gates/scope.ts'
import { namePurchase } from '../src/kernel/purchase.ts'
import type { Tool } from '../src/kernel/tool.ts'
import type { Seller } from '../src/rails/selling/x402/sale.ts'
import type { McpCaller } from './caller.ts'
import type { ToolResult } from './result.ts'
import { findEarlierPurchase, type McpPurchase, requiredPayment, sellThroughMcp } from './x402.ts'

interface SoldCall {
  readonly tool: Tool
  readonly caller: McpCaller
  readonly input: unknown
  readonly idempotencyKey: string
}

export interface Buyer {
  /**
   * @param payment payment of the call; undefined spends the owner's money. @param byOwner spends the owner's money,
   * once per key. @throws Failure as `byOwner` and REST sales do.
   */
  buy(call: SoldCall, payment: unknown, byOwner: () => Promise<ToolResult>): Promise<ToolResult>
  /** Payment terms for a purchase that the owner's money does not cover; empty if it cannot be bought. */
  terms(call: SoldCall): Promise<Record<string, unknown>>
}

export function createBuyer(services: Services, seller: Seller): Buyer {
  const preparePurchase = ({ tool, caller, input, idempotencyKey: key }: SoldCall) => {
    const { principal, now } = caller
    const { database, chains } = services
    requireScope(tool, principal)
    const call = tool.decode(input)
    const { sell } = call
    if (sell === null) throw new Error(`${tool.name} is not for sale`)
    const { named: purchase, isOwners } = namePurchase(
      { database, chains, now },
      { principal, key },
      { tool, call },
    )
    const context = { ...services, ...caller, idempotencyKey: null, afterCommit: () => {} }
    const buying: McpPurchase = {
      route: tool.route,
      input: call.input,
      deliver: () => sell(context),
      purchase,
    }
    return { buying, isOwners }
  }
  const requireOpen = async ({ tool, caller }: SoldCall) => {
    if (caller.principal.key.status !== 'active') throw buildPausedFailure()
    await requireRail(tool, services)
  }

  return {
    async buy(call, payment, byOwner) {
      const { buying, isOwners } = preparePurchase(call)
      try {
        if (payment === undefined || (await isOwners())) return await byOwner()
        await requireOpen(call)
        return await sellThroughMcp(seller, payment, buying)
      } catch (error) {
        // An earlier purchase remains valid, whatever has changed since.
        const isFinal = !(error instanceof Failure) || error.code === 'settlement_pending'
        const bought = isFinal ? null : await findEarlierPurchase(seller, buying.purchase)
        if (bought === null) throw error
        return bought
      }
    },
    async terms(call) {
      try {
        const { buying } = preparePurchase(call)
        await requireOpen(call)
        return await requiredPayment(seller, buying)
      } catch {
        return {}
      }
    },
  }
}

/** A paused key cannot buy with any money; the failure equals that of the spend gate. */
function buildPausedFailure(): Failure {
  return new Failure('policy_denied', 'The key is paused and cannot buy, whichever money pays.', {
    violations: [buildViolation('paused', {})],
    hint: 'Ask the owner to resume the key.',
  })
}
