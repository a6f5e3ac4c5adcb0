/**
 * What is sold, over MCP: the owner's money pays, or the caller by itself. One idempotency key buys once, however it is
 * paid for: whoever comes with it again is told what was bought, or how that stands.
 */

import { violationOf } from '../policies/decision.ts'
import { Failure } from '../src/failures/failure.ts'
import type { Services } from '../src/kernel/context.ts'
import { requireRail } from '../src/kernel/gates/rail.ts'
import { requireScope } from '../src/kernel/gates/scope.ts'
import { purchaseOf } from '../src/kernel/purchase.ts'
import type { Tool } from '../src/kernel/tool.ts'
import type { Seller } from '../src/x402/sale.ts'
import type { McpCaller } from './caller.ts'
import type { ToolResult } from './result.ts'
import { findEarlierPurchase, type McpPurchase, requiredPayment, sellThroughMcp } from './x402.ts'

/** A call of what is sold. */
interface SoldCall {
  readonly tool: Tool
  readonly caller: McpCaller
  readonly input: unknown
  readonly idempotencyKey: string
}

/** Buys. */
export interface Buyer {
  /**
   * @param payment that the call came with; undefined: the owner's money pays. @param byOwner spends it, once for the key.
   * @throws Failure as `byOwner`, and as selling over REST.
   */
  buy(call: SoldCall, payment: unknown, byOwner: () => Promise<ToolResult>): Promise<ToolResult>
  /** How to pay for what the owner does not; nothing where it cannot be bought at the moment. */
  terms(call: SoldCall): Promise<Record<string, unknown>>
}

/** Prepares buying. */
export function createBuyer(services: Services, seller: Seller): Buyer {
  const buyingOf = ({ tool, caller, input, idempotencyKey: key }: SoldCall) => {
    const { principal, now } = caller
    const { database } = services
    requireScope(tool, principal)
    const call = tool.decode(input)
    const { sell } = call
    if (sell === null) throw new Error(`${tool.name} is not for sale`)
    const { named: purchase, isOwners } = purchaseOf({ database, now }, { principal, key }, { tool, call })
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
    if (caller.principal.key.status !== 'active') throw paused()
    await requireRail(tool, services)
  }

  return {
    async buy(call, payment, byOwner) {
      const { buying, isOwners } = buyingOf(call)
      try {
        if (payment === undefined || (await isOwners())) return await byOwner()
        await requireOpen(call)
        return await sellThroughMcp(seller, payment, buying)
      } catch (error) {
        // What was bought stands, whatever has changed since.
        const isTold = !(error instanceof Failure) || error.code === 'settlement_pending'
        const bought = isTold ? null : await findEarlierPurchase(seller, buying.purchase)
        if (bought === null) throw error
        return bought
      }
    },
    async terms(call) {
      try {
        const { buying } = buyingOf(call)
        await requireOpen(call)
        return await requiredPayment(seller, buying)
      } catch {
        return {}
      }
    },
  }
}

/** The kill switch holds whoever pays: the answer is that of the spend gate. */
function paused(): Failure {
  return new Failure('policy_denied', 'The key is paused: it buys nothing, whoever pays.', {
    violations: [violationOf('paused', {})],
    hint: 'Ask the owner to resume the key.',
  })
}
