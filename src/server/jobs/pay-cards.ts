/** Moves the money of cards on a chain: settlements to the treasury, and money to and from the escrows. */

import { escrowPlace } from '../../books/ledger/accounts.ts'
import { type Address, CARDS_AGENT } from '../../providers/chain/port.ts'
import { type CardSettlement, unsentSettlements } from '../../rails/cards/settlements.ts'
import { type EscrowParts, keepEscrows } from '../../rails/wallets/escrow/escrow.ts'
import { sendTransfer } from '../../rails/wallets/transfers/send-transfer.ts'

const BATCH = 100
/** Settlements that are sent at once. */
const WIDTH = 16

const byOwner = { kind: 'gateway' } as const
const byAllowance = { kind: 'allowance', agentId: CARDS_AGENT } as const

interface CardPaymentDependencies extends EscrowParts {
  readonly settings: EscrowParts['settings'] & { readonly cardTreasury: Address }
}

/** Runs one round. A failing item does not block the others. @param signal stops the round early. */
export async function payCards(parts: CardPaymentDependencies, signal: AbortSignal): Promise<number> {
  const unsent = await unsentSettlements(parts, {
    chain: parts.chain.name,
    at: parts.clock(),
    limit: BATCH,
  })
  for (let at = 0; at < unsent.length && !signal.aborted; at += WIDTH)
    await Promise.all(unsent.slice(at, at + WIDTH).map((settlement) => pay(parts, settlement)))
  return unsent.length + (await keepEscrows(parts, signal))
}

async function pay(
  parts: CardPaymentDependencies,
  { isWalletOurs, place, ...settlement }: CardSettlement,
): Promise<void> {
  const isEscrow = place === escrowPlace(parts.chain.name)
  await sendTransfer(parts, {
    authorizedBy: { signer: 'sandbox', authorization: isEscrow || isWalletOurs ? byOwner : byAllowance },
    ...settlement,
    ...(isEscrow && { payer: 'escrow' }),
    destination: parts.settings.cardTreasury,
    at: parts.clock(),
    // Another gateway may have sent it; settle-pending tracks every sent transfer.
  }).catch((err: unknown) =>
    parts.log.warn({ err, decisionId: settlement.decisionId }, 'sending a card settlement failed'),
  )
}
