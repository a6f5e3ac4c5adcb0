/** Reverses a confirmed transfer that a reorganization dropped and the chain can never execute again. */
import {
  available,
  escrowPlace,
  external,
  held,
  type OwnerAccount,
  pursePlace,
} from '../../../books/ledger/accounts.ts'
import { lockUnits } from '../../../books/ledger/balances.ts'
import { post } from '../../../books/ledger/post.ts'
import { minimum } from '../../../core/money/shares.ts'
import type { Chain } from '../../../providers/chain/port.ts'
import type { Connection } from '../../../storage/database.ts'
import { findWalletOwner, type Transfer } from '../store.ts'

/**
 * Books the amount back to the sender within the caller's transaction, once. A receiver on our books returns what is
 * still available; the rest becomes the receiver's shortfall, which reconciliation freezes.
 * @param isPromised the money is owed to a third party, as in a card settlement, and stays held.
 * @returns whether this call reversed it.
 */
export async function reverseTransfer(
  { database, chain }: { database: Connection; chain: Pick<Chain, 'name'> },
  transfer: Transfer,
  { isPromised, at }: { isPromised: boolean; at: Date },
): Promise<boolean> {
  const { id, wallet, token: asset, units, destination } = transfer
  const ended = await database.kysely
    .updateTable('transfer')
    .set({
      state: 'failed',
      failure: 'a reorganization of the chain reversed it',
      failure_code: 'provider_unavailable',
      updated_at: at,
    })
    .where('id', '=', id)
    .where('state', '=', 'confirmed')
    .returning('id')
    .executeTakeFirst()
  if (ended === undefined) return false
  if (await reversePull(database, transfer, at)) return true
  const place = chain.name
  const receiver = await findReceiver(database, { destination, place })
  const there = receiver === undefined ? 0n : await lockUnits(database, receiver, asset)
  const given = minimum(there, units)
  const source = wallet.isEscrow ? escrowPlace(place) : place
  const back = isPromised ? held(wallet.accountId, source) : available(wallet.accountId, source)
  const shares = [
    ...(receiver === undefined || given === 0n ? [] : [{ source: receiver, units: given }]),
    ...(given === units ? [] : [{ source: external(place), units: units - given }]),
  ]
  await post(database, {
    id: `reversal:${id}`,
    kind: 'transfer_reversal',
    reference: id,
    at,
    postings: shares.map((share) => ({
      source: share.source,
      destination: back,
      money: { asset, units: share.units },
    })),
  })
  return true
}

/** Books a pull to an escrow back, with what purchases hold of it. @returns false where the transfer is no pull. */
async function reversePull(
  database: Connection,
  { id, decisionId }: Pick<Transfer, 'id' | 'decisionId'>,
  at: Date,
): Promise<boolean> {
  const reversed = await database.call(
    {
      name: 'card_pull_lost',
      text: 'select card_pull_lost(p.decision_id, $2, $3) from card_pull p where p.decision_id = $1',
    },
    [decisionId, id, at],
  )
  return reversed.length > 0
}

/** The account on our books that the money went to: a wallet's or a purse's; undefined: it left the books. */
async function findReceiver(
  database: Connection,
  { destination, place }: { destination: Transfer['destination']; place: string },
): Promise<OwnerAccount | undefined> {
  const owner = await findWalletOwner(database, destination)
  if (owner !== undefined) return available(owner, place)
  const purse = await database.kysely
    .selectFrom('purse')
    .select(['id', 'account_id'])
    .where('address', '=', destination)
    .executeTakeFirst()
  return purse === undefined ? undefined : available(purse.account_id, pursePlace(purse.id))
}
