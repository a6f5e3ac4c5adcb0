/** Asks a seller again, before anything is signed, whether it still sells under the terms that were decided. */
import { Failure } from '../../core/failures/failure.ts'
import type { Connection } from '../../storage/database.ts'
import { findTransferOfDecision } from '../wallets/store.ts'
import { failPurchase } from './end-purchase.ts'
import { readOffers, toOfferChain } from './offers.ts'
import { isOffered, type PayingParts } from './pay-purchase.ts'
import { askUnpaid, type PurchaseRequest } from './request.ts'
import { lockReservation, type Purchase } from './store.ts'

/**
 * Ends a purchase unpaid whose seller asks for something else meanwhile, or does not answer. One whose money is on its way to its
 * purse goes on. @returns false if it has ended.
 */
export async function confirmTerms(
  parts: PayingParts,
  purchase: Purchase,
  request: PurchaseRequest,
): Promise<boolean> {
  const { database } = parts
  const isSent = async (connection: Connection) =>
    (await findTransferOfDecision(connection, purchase.decision_id)) !== undefined
  if (await isSent(database)) return true
  const refusal = await findRefusal(parts, purchase, request)
  if (refusal === undefined) return true
  return !(await failPurchase(parts, purchase, {
    ...refusal,
    from: 'reserved',
    unless: async (connection) => {
      await lockReservation(connection, purchase.decision_id)
      return isSent(connection)
    },
  }))
}

async function findRefusal(
  { chain, clock, settings, fetchPublic }: PayingParts,
  purchase: Purchase,
  request: PurchaseRequest,
): Promise<{ readonly code: string; readonly failure: string } | undefined> {
  try {
    const answer = await askUnpaid(request, { fetchPublic, loopback: settings.mode === 'sandbox' })
    const offers = readOffers(await toOfferChain(chain, settings), answer, clock())
    if (answer.status === 402 && isOffered(offers, purchase)) return undefined
    return {
      code: 'terms_not_payable',
      failure: 'the seller changed its terms while the money came from another chain',
    }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { code: 'seller_failed', failure: 'the seller did not answer once the money had come' }
  }
}
