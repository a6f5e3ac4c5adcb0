/**
 * After a reorganization: what was settled shortly before is looked for again. A transfer or relay that the chain has lost is
 * sent again, under the nonce by which it can happen once, and booked back where it can happen no more; a lost x402 payment,
 * which only its payer can send, is waited for and then booked back.
 */
import { reopenSettlement } from '../cards/settlements.ts'
import { operationOutcome } from '../evidence/operation-outcome.ts'
import { outcomeOf } from '../payments/resolve-payment.ts'
import { paymentsSettledSince, reversePayment } from '../payments/store.ts'
import type { RelayDependencies } from '../wallets/relays/relay-outcome.ts'
import { relayOutcome } from '../wallets/relays/relay-outcome.ts'
import { resendRelay } from '../wallets/relays/relay-payment.ts'
import { relaysConfirmedSince, updateRelayTransaction } from '../wallets/relays/relay-store.ts'
import { operationOf, transfersConfirmedSince, updateTransferTransaction } from '../wallets/store.ts'
import { reverseTransfer } from '../wallets/transfers/reverse-transfer.ts'
import { requireAuthentic } from '../wallets/transfers/transfer-mac.ts'

/** How far the chain's clock may be behind ours: a transfer is given up only so long after its time. */
const CLOCKS_APART_MS = 60_000

/** How long a lost payment may come back by itself: less than what is verified. */
const AWAITED_MS = 8 * 60_000

/** How many are looked for at the same time. */
const AT_ONCE = 16

/** No reorganization reaches further back. */
export const MAX_REORGANIZATION_MS = 10 * 60_000

/** Verifies what was settled since a moment. @returns how many settlements are still missing on the chain. */
export async function verifySettled(
  parts: RelayDependencies,
  since: Date,
  signal: AbortSignal,
): Promise<number> {
  const checks = [
    ...(await transfersConfirmedSince(parts.database, since)).map(
      (transfer) => () => repeatTransfer(parts, transfer),
    ),
    ...(await relaysConfirmedSince(parts.database, since)).map((relay) => () => repeatRelay(parts, relay)),
    ...(await paymentsSettledSince(parts.database, since)).map(
      (payment) => () => reverseLost(parts, payment),
    ),
  ]
  let missing = 0
  for (let from = 0; from < checks.length && !signal.aborted; from += AT_ONCE) {
    const found = await Promise.all(
      checks.slice(from, from + AT_ONCE).map((check) =>
        check().catch((err: unknown) => {
          parts.log.warn({ err }, 'a settlement cannot be verified yet')
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
  { database, chain, log, clock, settings }: RelayDependencies,
  transfer: ConfirmedTransfer,
): Promise<boolean> {
  const operation = operationOf(transfer)
  const outcome = await operationOutcome(chain, operation, 0)
  if (outcome.status === 'confirmed') {
    const { transactionHash } = outcome
    if (transactionHash !== transfer.transactionHash)
      await updateTransferTransaction(database, { id: transfer.id, transactionHash, at: clock() })
    return true
  }
  const facts = { transferId: transfer.id, status: outcome.status }
  // Until its time is over the chain may have it back at any moment.
  const isOver = clock().getTime() > transfer.validUntil.getTime() + CLOCKS_APART_MS
  if (outcome.status === 'pending') return false
  if (outcome.status === 'absent' && !isOver) {
    log.warn(facts, 'the chain lost a confirmed transfer: it is sent again')
    requireAuthentic(settings.dataKey, transfer)
    await chain.submit(operation)
    return false
  }
  const at = clock()
  await database.transaction(async (connection) => {
    const isPromised = await reopenSettlement(connection, { decisionId: transfer.decisionId, at })
    await reverseTransfer({ database: connection, chain }, transfer, { isPromised, at })
  })
  log.error(facts, 'the chain lost a confirmed transfer for good: it is booked back')
  return true
}

type ConfirmedRelay = Awaited<ReturnType<typeof relaysConfirmedSince>>[number]

async function repeatRelay(parts: RelayDependencies, relay: ConfirmedRelay): Promise<boolean> {
  const end = await relayOutcome(parts, relay)
  if (end?.state === 'confirmed') {
    const { database, clock } = parts
    const { transactionHash } = end
    if (transactionHash !== relay.transactionHash)
      await updateRelayTransaction(database, { id: relay.id, transactionHash, at: clock() })
    return true
  }
  const facts = { relayId: relay.id }
  if (end !== undefined) {
    parts.log.error(facts, 'the chain lost a confirmed relay for good')
    return true
  }
  parts.log.warn(facts, 'the chain lost a confirmed relay: it is sent again')
  await resendRelay(parts, relay)
  return false
}

async function reverseLost(
  parts: RelayDependencies,
  payment: Awaited<ReturnType<typeof paymentsSettledSince>>[number],
): Promise<boolean> {
  const { status } = await outcomeOf(parts, payment)
  if (status === 'paid') return true
  const { database, clock, log } = parts
  const now = clock().getTime()
  const isOver =
    now > payment.valid_before.getTime() + CLOCKS_APART_MS || now > payment.updated_at.getTime() + AWAITED_MS
  if (status === 'unused' && !isOver) return false
  if (await reversePayment(database, { id: payment.id, at: clock() }))
    log.error({ paymentId: payment.id }, 'the chain lost a settled payment: it is booked back')
  return true
}
