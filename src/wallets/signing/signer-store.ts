/** Externally owned accounts that sign for wallets, and the on-chain owner of a wallet. */
import type { NewId } from '../../base/ids.ts'
import type { Page } from '../../base/page.ts'
import { stablecoins } from '../../money/money.ts'
import type { Address, Chain, WalletOwner } from '../../providers/chain.ts'
import type { Connection } from '../../storage/database.ts'
import { lowerCase } from '../store.ts'

/** An EVM key that signs for an account. @property address lower case. */
export interface EoaSigner {
  readonly id: string
  readonly address: Address
  readonly createdAt: Date
}

/** Lists an account's EVM keys, newest first: all of them, or one more than a page. */
export async function findEoaSigners(
  database: Connection,
  { accountId, page }: { accountId: string; page?: Page },
): Promise<readonly EoaSigner[]> {
  let query = database.kysely
    .selectFrom('wallet_signer')
    .select(['id', 'address', 'created_at'])
    .where('account_id', '=', accountId)
  if (page !== undefined) query = query.limit(page.limit + 1)
  if (page !== undefined && page.after !== null) query = query.where('id', '<', page.after)
  const rows = await query.orderBy('id', 'desc').execute()
  return rows.map((row) => ({
    id: row.id,
    address: lowerCase(`0x${row.address.slice(2)}`),
    createdAt: row.created_at,
  }))
}

/** Stores an EVM key as a signer of an account. @returns undefined when it is already one. */
export async function insertEoaSigner(
  { database, newId }: { database: Connection; newId: NewId },
  { accountId, address, at }: { accountId: string; address: Address; at: Date },
): Promise<EoaSigner | undefined> {
  const signer = { id: newId('sgn', at), address: lowerCase(address), createdAt: at }
  const row = await database.kysely
    .insertInto('wallet_signer')
    .values({ id: signer.id, account_id: accountId, address: signer.address, created_at: at })
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst()
  return row === undefined ? undefined : signer
}

/**
 * Transfers a gateway-owned wallet to its account's first own signer. The chain follows before the next operation and
 * lets the gateway spend what cards hold of the wallet at this moment. A wallet that already has another owner keeps
 * it.
 */
export async function transferOwnership(
  { database, chain }: { database: Connection; chain: Pick<Chain, 'allowancePrices'> },
  accountId: string,
  owner: WalletOwner,
): Promise<void> {
  await database.call({ name: 'wallets_give', text: 'select wallet_give($1, $2::jsonb, $3, $4)' }, [
    accountId,
    JSON.stringify(owner),
    stablecoins,
    stablecoins.map((token) => chain.allowancePrices[token].toString()),
  ])
}
