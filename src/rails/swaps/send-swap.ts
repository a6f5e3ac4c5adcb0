/** Executes a swap: its row, the transfer to the desk with the route, and the end. Called with the money already reserved. */
import { releaseSpend } from '../../books/spending/release.ts'
import { Failure } from '../../core/failures/failure.ts'
import { type Chain, tokenAddress } from '../../providers/chain/port.ts'
import type { TransferFields } from '../wallets/signing/intent-store.ts'
import { lowerCase } from '../wallets/store.ts'
import { findRepeatedTransfer } from '../wallets/transfers/find-repeated-transfer.ts'
import {
  sendTransfer,
  type TransferAuthorization,
  type TransferDependencies,
} from '../wallets/transfers/send-transfer.ts'
import { findSwap, insertSwap, type SwapOrder } from './orders.ts'
import type { PlannedSwap } from './plan-swap.ts'
import { type AnySwapDependencies, settleSwap } from './settle-swap.ts'
import type { ExecutableQuote } from './store.ts'

/** A swap to send, under an allowed decision. @property quoteId null: it was quoted for this call. */
export interface SwapToSend {
  readonly swap: ExecutableQuote
  readonly quoteId: string | null
  readonly decisionId: string
  readonly accountId: string
  readonly keyId: string | null
  readonly authorizedBy: TransferAuthorization
  readonly at: Date
}

/** The transfer that pays the desk for a swap. */
export function buildDeskTransfer(
  chain: Pick<Chain, 'name' | 'swapDesk' | 'bridgeDesk' | 'tokens'>,
  { sell, units, route }: Pick<PlannedSwap, 'sell' | 'units' | 'route'>,
): TransferFields {
  // What the chain does not have cannot be swapped there.
  for (const token of [sell, route.buy]) tokenAddress(chain, token)
  const desk = route.burn === undefined ? chain.swapDesk : chain.bridgeDesk
  return { token: sell, units, destination: lowerCase(desk), chain: chain.name, route }
}

/** What sending a swap needs. */
export type SendSwapDependencies = TransferDependencies & Pick<AnySwapDependencies, 'chains' | 'attester'>

/**
 * Sends a swap and waits for its end for a moment.
 * @returns the swap, which may be `submitted` still. @throws Failure `swap_rejected`, `signature_rejected` when nothing moved.
 */
export async function sendSwap(
  parts: SendSwapDependencies,
  { swap, quoteId, decisionId, accountId, keyId, authorizedBy, at }: SwapToSend,
): Promise<SwapOrder> {
  const { database, chain, newId } = parts
  const { token, units, destination, route } = buildDeskTransfer(chain, swap)
  const id = newId('swp', at)
  const isInserted = await insertSwap(database, {
    ...{ id, accountId, keyId, decisionId, units, createdAt: at },
    quoteId: quoteId ?? id,
    chain: chain.name,
    sell: swap.sell,
    buy: swap.route.buy,
    minReceived: swap.route.minReceived,
    expected: swap.expected,
    feeMicros: swap.feeMicros,
    route: swap.tool,
    toChain: swap.route.burn?.to ?? null,
  })
  if (!isInserted) {
    await releaseSpend(database, { decisionId, at })
    throw new Failure('swap_rejected', 'The quote was used by another swap meanwhile. Nothing was sent.', {
      decisionId,
      reason: 'quote_used',
      isFinal: true,
      hint: 'Ask for a new quote with POST /api/swaps.',
    })
  }
  const order = { authorizedBy, accountId, decisionId, token, units, destination, at }
  await sendTransfer(parts, { ...order, ...(route === undefined ? {} : { route }) }).catch(
    async (error: unknown) => {
      // Unknown stays submitted: the job finds out.
      if (!(error instanceof Failure) || error.code === 'settlement_pending') {
        if (error instanceof Failure) return
        throw error
      }
      const ended = await settle(parts, decisionId)
      throw buildRejection(error, { decisionId, failure: ended?.failure ?? null })
    },
  )
  const sent = await settle(parts, decisionId)
  if (sent === undefined) throw new Error(`the swap ${id} cannot be read`)
  return sent
}

/**
 * Finds the outcome of a decision's swap; null while nothing is known of it.
 * @throws Failure as the first call did, when nothing moved.
 */
export async function findRepeatedSwap(
  parts: SendSwapDependencies,
  { decisionId, intentId }: { readonly decisionId: string; readonly intentId: string | null },
): Promise<SwapOrder | null> {
  try {
    if ((await findRepeatedTransfer(parts, decisionId, { intentId })) === null) return null
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const ended = await settle(parts, decisionId)
    throw buildRejection(error, { decisionId, failure: ended?.failure ?? null })
  }
  return (await settle(parts, decisionId)) ?? null
}

async function settle(parts: SendSwapDependencies, decisionId: string): Promise<SwapOrder | undefined> {
  const swap = await findSwap(parts.database, { decisionId })
  return swap === undefined || swap.state !== 'submitted' ? swap : settleSwap(parts, swap)
}

/** A swap that was not made. What the chain refused of an owner's or an agent's authority keeps its code. */
function buildRejection(
  error: Failure,
  { decisionId, failure }: { readonly decisionId: string; readonly failure: string | null },
): Failure {
  if (error.code !== 'provider_unavailable' || failure === null) return error
  return new Failure(
    'swap_rejected',
    `The swap was not made: ${failure}. Nothing moved; the money is available again.`,
    {
      decisionId,
      reason: 'route_refused',
      isFinal: true,
      hint: 'Ask for a new quote with POST /api/swaps; another route or a lower amount may help.',
    },
  )
}
