/** Opens an account's wallet: the address of its smart account and, in the sandbox, its initial funds. */

import { available, external } from '../../books/ledger/accounts.ts'
import { post } from '../../books/ledger/post.ts'
import type { NewId } from '../../core/base/ids.ts'
import type { Money, Stablecoin } from '../../core/money/money.ts'
import type { Address, Chain, WalletOwner } from '../../providers/chain/port.ts'
import type { Connection } from '../../storage/database.ts'
import { insertWallet, openedBy } from './store.ts'

/** Initial funds of a demo wallet in smallest units: 1,000 USDC, 500 EURC, 250 USDT, 250 PYUSD. */
export const demoFunds: readonly (Money & { asset: Stablecoin })[] = [
  { asset: 'USDC', units: 1_000_000_000n },
  { asset: 'EURC', units: 500_000_000n },
  { asset: 'USDT', units: 250_000_000n },
  { asset: 'PYUSD', units: 250_000_000n },
]

/**
 * Opens the wallet of an account. The smart account is deployed with its first operation.
 * @param owner initial on-chain owner; by default the gateway, until the account has a signer.
 */
export async function openWallet(
  { database, chain }: { database: Connection; chain: Chain },
  { accountId, owner = { kind: 'gateway' }, at }: { accountId: string; owner?: WalletOwner; at: Date },
): Promise<Address> {
  const origin = owner.kind === 'gateway' ? openedBy(chain.opensWith) : owner
  const wallet = { accountId, origin, owner }
  const address = await chain.walletAddress(wallet)
  await insertWallet(database, { ...wallet, address, chain: chain.name, at })
  return address
}

/** Books money received on the chain as available. */
export async function bookDeposit(
  { database, chain, newId }: { database: Connection; chain: Pick<Chain, 'name'>; newId: NewId },
  {
    accountId,
    funds,
    reference,
    at,
  }: { accountId: string; funds: readonly Money[]; reference: string; at: Date },
): Promise<void> {
  await post(database, {
    id: newId('tx', at),
    kind: 'deposit',
    reference,
    at,
    postings: funds.map((money) => ({
      source: external(chain.name),
      destination: available(accountId, chain.name),
      money,
    })),
  })
}
