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

/** A purse is still paying or being swept with the money that a reversal takes back, or an escrow with that of a pull. */
export class PurseBusy extends Error {}

/** How long a reversal waits for what a purse or an escrow pays; its operations end within minutes. */
const PURSE_WAIT_MS = 60 * 60_000

/**
 * Books the amount back to the sender within the caller's transaction, once. A receiver on our books returns what is
 * still available; the rest becomes the receiver's shortfall, which reconciliation freezes.
 * @param isPromised the money is owed to a third party, as in a card settlement, and stays held.
 * @returns whether this call reversed it.
 * @throws PurseBusy the receiver is a purse that holds the money for a payment or a sweep, which the chain can no longer
 * execute without it: it ends within minutes, and then all of it can be taken back. Or the transfer is a pull, and its escrow has
 * paid with the money, which is reversed or refused first. The transaction must be rolled back.
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
  const mayWait = at.getTime() < transfer.validUntil.getTime() + PURSE_WAIT_MS
  if (await reversePull(database, transfer, { isLate: !mayWait, at })) return true
  const place = chain.name
  const receiver = await findReceiver(database, { destination, place })
  const there = receiver === undefined ? 0n : await lockUnits(database, receiver.account, asset)
  const given = minimum(there, units)
  if (given < units && mayWait && (await isPaying(database, { receiver, asset })))
    throw new PurseBusy(`the receiver of ${id} still pays with its money`)
  const source = wallet.isEscrow ? escrowPlace(place) : place
  const back = isPromised ? held(wallet.accountId, source) : available(wallet.accountId, source)
  const shares = [
    ...(receiver === undefined || given === 0n ? [] : [{ source: receiver.account, units: given }]),
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

/**
 * Books a pull to an escrow back, with what purchases hold of it.
 * @returns false where the transfer is no pull. @throws PurseBusy as {@link reverseTransfer}.
 */
async function reversePull(
  database: Connection,
  { id, decisionId }: Pick<Transfer, 'id' | 'decisionId'>,
  { isLate, at }: { isLate: boolean; at: Date },
): Promise<boolean> {
  const [reversed] = await database.call<{ verdict: 'booked' | 'busy' }>(
    {
      name: 'card_pull_lost',
      text: 'select l.verdict from card_pull p, card_pull_lost(p.decision_id, $2, $3, $4) l where p.decision_id = $1',
    },
    [decisionId, id, at, isLate],
  )
  if (reversed?.verdict === 'busy') throw new PurseBusy(`the escrow of ${id} still pays with its money`)
  return reversed !== undefined
}

/** Where on our books the money went to. @property paying what it holds for payments and sweeps, if it is a purse. */
interface Receiver {
  readonly account: OwnerAccount
  readonly paying: OwnerAccount | null
}

/** @returns undefined where it left the books. */
async function findReceiver(
  database: Connection,
  { destination, place }: { destination: Transfer['destination']; place: string },
): Promise<Receiver | undefined> {
  const owner = await findWalletOwner(database, destination)
  if (owner !== undefined) return { account: available(owner, place), paying: null }
  const purse = await database.kysely
    .selectFrom('purse')
    .select(['id', 'account_id'])
    .where('address', '=', destination)
    .executeTakeFirst()
  if (purse === undefined) return undefined
  const [accountId, at] = [purse.account_id, pursePlace(purse.id)]
  return { account: available(accountId, at), paying: held(accountId, at) }
}

async function isPaying(
  database: Connection,
  { receiver, asset }: { receiver: Receiver | undefined; asset: string },
): Promise<boolean> {
  if (receiver === undefined || receiver.paying === null) return false
  const row = await database.kysely
    .selectFrom('balance')
    .select('units')
    .where('account', '=', receiver.paying)
    .where('asset', '=', asset)
    .executeTakeFirst()
  return row !== undefined && row.units > 0n
}
