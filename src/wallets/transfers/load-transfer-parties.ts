/** Loads the source wallet and the destination's owner in one query, before anything is reserved. */
import type { Address, Wallet } from '../../providers/chain.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'
import { addressOf, lowerCase, type WalletColumns, walletOf } from '../store.ts'

/** Source and destination of a transfer, in our own books. */
export interface TransferParties {
  /** Wallet of the source account; undefined if it has none. */
  readonly wallet: (Wallet & { readonly address: Address }) | undefined
  /** True if an EVM key signs for the wallet. */
  readonly hasEvmKey: boolean
  /** True if the destination is also a wallet of the gateway. */
  readonly isOwnWallet: boolean
}

interface Row extends WalletColumns {
  readonly address: string | null
  readonly has_evm_key: boolean
  readonly is_own_wallet: boolean
}

const statement: Statement = {
  name: 'wallets_find_ends',
  text: `select w.address, w.origin, w.owner, w.card_cover,
      exists (select from wallet_signer s where s.account_id = $1) as has_evm_key,
      exists (select from wallet d where d.address = $2) as is_own_wallet
    from (values (1)) as one left join wallet w on w.account_id = $1`,
}

export async function loadTransferParties(
  database: Connection,
  { accountId, destination }: { accountId: string; destination: Address },
): Promise<TransferParties> {
  const row = await callForRow<Row>(database, statement, [accountId, lowerCase(destination)])
  const { address, has_evm_key: hasEvmKey, is_own_wallet: isOwnWallet } = row
  const wallet = address === null ? undefined : { ...walletOf(accountId, row), address: addressOf(address) }
  return { wallet, hasEvmKey, isOwnWallet }
}
