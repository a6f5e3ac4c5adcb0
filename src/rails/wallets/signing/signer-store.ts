/** Externally owned accounts that sign for wallets, and the on-chain owner of a wallet. */
import type { NewId } from '../../../core/base/ids.ts'
import type { Page } from '../../../core/base/page.ts'
import { Failure } from '../../../core/failures/failure.ts'
import type { Address, WalletOwner } from '../../../providers/chain/port.ts'
import { type Connection, callForRow } from '../../../storage/database.ts'
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

/** True if a passkey or an EVM key signs for an account, or owns its wallet on chain. */
export async function hasSigner(database: Connection, accountId: string): Promise<boolean> {
  const [row] = await database.call<{ guarded: boolean }>(
    {
      name: 'wallets_has_signer',
      text: `select exists (select from wallet_signer where account_id = $1)
        or exists (select from passkey p left join membership m on m.person_id = p.account_id
          where p.account_id = $1 and coalesce(m.account_id, $1) = $1)
        or exists (select from wallet where account_id = $1 and owner ->> 'kind' <> 'gateway') as guarded`,
    },
    [accountId],
  )
  return row?.guarded === true
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
 * Transfers a gateway-owned wallet to its account's first own signer; the chain follows before the next operation. A
 * wallet that already has another owner keeps it.
 * @throws Failure `wallet_busy` while cards hold money in the wallet, or its account owes a debt.
 */
export async function transferOwnership(
  database: Connection,
  accountId: string,
  owner: WalletOwner,
): Promise<void> {
  const { verdict } = await callForRow<{ verdict: 'given' | 'busy' | 'kept' }>(
    database,
    { name: 'wallets_give', text: 'select verdict from wallet_give($1, $2::jsonb)' },
    [accountId, JSON.stringify(owner)],
  )
  // A purchase came in between: the signer that was just written must not stay without its wallet.
  if (verdict === 'busy') throw walletBusy({ isCommitted: false })
}

/** True if the gateway owns an account's wallet and has promised money in it that it has not moved yet. */
export async function isWalletBusy(database: Connection, accountId: string): Promise<boolean> {
  const rows = await database.call<{ busy: boolean }>(
    {
      name: 'wallets_busy',
      text: `select wallet_is_busy(account_id) as busy from wallet where account_id = $1 and owner->>'kind' = 'gateway'`,
    },
    [accountId],
  )
  return rows[0]?.busy ?? false
}

/**
 * A hand-over that has to wait.
 * @param isCommitted keeps what was begun for it: a credential that was shown, a code that was used.
 */
export function walletBusy({ isCommitted }: { isCommitted: boolean }): Failure {
  return new Failure(
    'wallet_busy',
    'The wallet cannot change hands yet: card purchases hold money in it, or the account owes a debt.',
    {
      isCommitted,
      retryAfter: 5,
      hint: 'What cards hold is being moved to the account’s escrow, which takes a few seconds; a debt is paid from the next money that arrives. Then send the request again.',
    },
  )
}
