/**
 * Re-verifies recent settlements after a reorganization. A lost transfer or relay is resent under its original nonce,
 * so it can happen only once, and reversed once it can no longer happen. A relay is resent for as long as its payer's
 * signature is valid, for minutes at most. A lost x402 payment can only be resent by its payer, so it is awaited and
 * then reversed; one that something else had displaced may be made after all. A purchase that has failed is read again too: its seller may use the authorization whose cancellation is lost.
 * So is the way of a purse's money back to the wallet.
 */

import { operationOutcome } from '../../books/evidence/operation-outcome.ts'
import { purchasesEndedSince, verifyPurchase } from '../../rails/buying/reverse-purchase.ts'
import { sweepsEndedSince, verifySweep } from '../../rails/buying/reverse-sweep.ts'
import { reopenSettlement } from '../../rails/cards/settlements.ts'
import { reviewChannels } from '../../rails/selling/payments/channels.ts'
import { readOutcome, resolvePayment } from '../../rails/selling/payments/resolve-payment.ts'
import {
  paymentsDisplacedSince,
  paymentsSettledSince,
  reversePayment,
} from '../../rails/selling/payments/store.ts'
import { bridgesMintedSince } from '../../rails/swaps/bridge-orders.ts'
import { rebookSwap, reverseSwap } from '../../rails/swaps/reverse-swap.ts'
import { verifyMint } from '../../rails/swaps/settle-bridge.ts'
import type { RelayDependencies } from '../../rails/wallets/relays/relay-outcome.ts'
import { finalRelayOutcome, relayOutcome } from '../../rails/wallets/relays/relay-outcome.ts'
import { resendRelay } from '../../rails/wallets/relays/relay-payment.ts'
import { relaysConfirmedSince, updateRelayTransaction } from '../../rails/wallets/relays/relay-store.ts'
import { toOperation, transfersConfirmedSince, updateTransferTransaction } from '../../rails/wallets/store.ts'
import { PurseBusy, reverseTransfer } from '../../rails/wallets/transfers/reverse-transfer.ts'
import { requireAuthentic } from '../../rails/wallets/transfers/transfer-mac.ts'

/** Tolerance for the chain's clock: a transfer is given up only this long after its expiry. */
const CLOCKS_APART_MS = 60_000

/** Wait for a lost payment to reappear; shorter than the verified period. */
const AWAITED_MS = 8 * 60_000

/** Concurrent checks. */
const AT_ONCE = 16

/** Maximum assumed depth of a reorganization. */
export const MAX_REORGANIZATION_MS = 10 * 60_000

interface VerifyingParts extends RelayDependencies {
  /**
   * A development chain may be replaced while its settlements are verified. The new chain's balances already include
   * them: to repeat or reverse one for its absence there would move the money twice. @throws if it was replaced.
   */
  readonly requireSameChain: () => Promise<void>
}

/**
 * Verifies settlements since a given time.
 * @param identity chain on which they were settled.
 * @returns the number still missing on the chain.
 */
export async function verifySettled(
  dependencies: RelayDependencies,
  { since, identity }: { since: Date; identity: string },
  signal: AbortSignal,
): Promise<number> {
  const requireSameChain = async () => {
    if ((await dependencies.chain.identity()) !== identity) throw new Error('the chain was replaced')
  }
  const parts: VerifyingParts = { ...dependencies, requireSameChain }
  const { database, chain, clock } = dependencies
  await reviewChannels(database, { chain: chain.name, since, at: clock() })
  const checks = [
    ...(await transfersConfirmedSince(parts, since)).map((transfer) => () => repeatTransfer(parts, transfer)),
    ...(await relaysConfirmedSince(parts, since)).map((relay) => () => repeatRelay(parts, relay)),
    ...(await paymentsSettledSince(parts, since)).map((payment) => () => reverseLost(parts, payment)),
    ...(await paymentsDisplacedSince(parts, since)).map((payment) => () => resettle(parts, payment)),
    ...(await purchasesEndedSince(parts, since)).map((purchase) => () => verifyPurchase(parts, purchase)),
    ...(await sweepsEndedSince(parts, since)).map((sweep) => () => verifySweep(parts, sweep)),
    ...(await bridgesMintedSince(parts, since)).map((swap) => async () => {
      await verifyMint(parts, swap)
      return true
    }),
  ]
  let missing = 0
  for (let from = 0; from < checks.length && !signal.aborted; from += AT_ONCE) {
    const found = await Promise.all(
      checks.slice(from, from + AT_ONCE).map((check) =>
        check().catch((err: unknown) => {
          parts.log.warn({ err }, 'verifying a settlement failed')
          return false
        }),
      ),
    )
    missing += found.filter((isThere) => !isThere).length
  }
  return missing
}

type ConfirmedTransfer = Awaited<ReturnType<typeof transfersConfirmedSince>>[number]

async function repeatTransfer(
  { database, chain, log, clock, settings, requireSameChain }: VerifyingParts,
  transfer: ConfirmedTransfer,
): Promise<boolean> {
  const operation = toOperation(transfer)
  const outcome = await operationOutcome(chain, operation, 0)
  if (outcome.status === 'confirmed') {
    const { transactionHash } = outcome
    if (transactionHash !== transfer.transactionHash)
      await updateTransferTransaction(database, { id: transfer.id, transactionHash, at: clock() })
    if (transfer.route !== undefined)
      await rebookSwap(
        { database, chain, clock, log },
        { decisionId: transfer.decisionId, hash: transactionHash },
      )
    return true
  }
  await requireSameChain()
  const facts = { transferId: transfer.id, status: outcome.status }
  // Until it expires, the chain may include it again at any time.
  const isOver = clock().getTime() > transfer.validUntil.getTime() + CLOCKS_APART_MS
  if (outcome.status === 'pending') return false
  if (outcome.status === 'absent' && !isOver) {
    log.warn(facts, 'the chain lost a confirmed transfer; resending it')
    requireAuthentic(settings.dataKey, transfer)
    await chain.submit(operation)
    return false
  }
  const at = clock()
  try {
    await database.transaction(async (connection) => {
      const isPromised = await reopenSettlement(connection, { decisionId: transfer.decisionId, at })
      await reverseTransfer({ database: connection, chain }, transfer, { isPromised, at })
      if (transfer.route !== undefined)
        await reverseSwap({ database: connection, chain }, { decisionId: transfer.decisionId, at })
    })
  } catch (error) {
    if (error instanceof PurseBusy) return false
    throw error
  }
  log.error(facts, 'the chain lost a confirmed transfer permanently; reversed it')
  return true
}

type ConfirmedRelay = Awaited<ReturnType<typeof relaysConfirmedSince>>[number]

async function repeatRelay(parts: VerifyingParts, relay: ConfirmedRelay): Promise<boolean> {
  const end = await relayOutcome(parts, relay)
  if (end?.state === 'confirmed') {
    const { database, clock } = parts
    const { transactionHash } = end
    if (transactionHash !== relay.transactionHash)
      await updateRelayTransaction(database, { id: relay.id, transactionHash, at: clock() })
    return true
  }
  await parts.requireSameChain()
  const facts = { relayId: relay.id }
  if (end !== undefined) {
    parts.log.error(facts, 'the chain lost a confirmed relay permanently')
    return true
  }
  // Its payer may have moved the money since, and a signature may be valid for years: the search must end.
  const isOver = parts.clock().getTime() > relay.updatedAt.getTime() + AWAITED_MS
  if (isOver || (await finalRelayOutcome(parts, relay.payment)) !== undefined) {
    parts.log.error(facts, 'the chain lost a confirmed relay, which cannot be resent')
    return true
  }
  parts.log.warn(facts, 'the chain lost a confirmed relay; resending it')
  await resendRelay(parts, relay)
  return false
}

/** Settles a failed payment that was made after all, because the block of what had displaced it was replaced. */
async function resettle(
  parts: VerifyingParts,
  payment: Awaited<ReturnType<typeof paymentsDisplacedSince>>[number],
): Promise<boolean> {
  const resolution = await resolvePayment(parts, payment)
  if (resolution === 'settled')
    parts.log.warn({ paymentId: payment.id }, 'a payment that had been displaced was made')
  return true
}

async function reverseLost(
  parts: VerifyingParts,
  payment: Awaited<ReturnType<typeof paymentsSettledSince>>[number],
): Promise<boolean> {
  const { status } = await readOutcome(parts, payment)
  if (status === 'paid') return true
  await parts.requireSameChain()
  const { database, clock, log } = parts
  const now = clock().getTime()
  const isOver =
    now > payment.valid_before.getTime() + CLOCKS_APART_MS || now > payment.updated_at.getTime() + AWAITED_MS
  if (status === 'unused' && !isOver) return false
  if (await reversePayment(database, { id: payment.id, at: clock() }))
    log.error({ paymentId: payment.id }, 'the chain lost a settled payment; reversed it')
  return true
}
