/** Whether a transfer may be attempted at all: chain, wallet and AML. Reads only; runs before anything is reserved. */
import { Failure } from '../failure.ts'
import type { Address, Chain } from '../providers/chain.ts'
import type { AddressScreening, Screening } from '../providers/screening.ts'
import type { Connection } from '../storage/database.ts'
import { findWallet, lowerCase } from './store.ts'

/** What admission needs. */
export interface Admission {
  readonly database: Connection
  readonly chain: Pick<Chain, 'name'>
  readonly screening: AddressScreening
}

/**
 * Admits a transfer.
 * @returns the screening that cleared it.
 * @throws Failure `chain_not_supported`, `not_found`, `invalid_request`, `aml_blocked`, `screening_unavailable`.
 */
export async function admitTransfer(
  { database, chain, screening }: Admission,
  transfer: { accountId: string; destination: Address; chain: string; safeAddress: Address | undefined },
): Promise<Screening> {
  if (transfer.chain !== chain.name)
    throw new Failure(
      'chain_not_supported',
      `This deployment does not transfer on "${transfer.chain.slice(0, 40)}".`,
      { hint: `Use "${chain.name}".` },
    )
  const wallet = await findWallet(database, transfer.accountId)
  if (
    wallet === undefined ||
    (transfer.safeAddress !== undefined && lowerCase(transfer.safeAddress) !== lowerCase(wallet))
  )
    throw new Failure('not_found', 'The account has no such wallet.', {
      hint: 'Leave out safeAddress, or take it from GET /api/wallets.',
    })
  const destination = lowerCase(transfer.destination)
  if (destination === lowerCase(wallet))
    throw new Failure('invalid_request', 'destination: is the paying wallet itself', {
      issues: [{ path: 'destination', message: 'is the paying wallet itself' }],
    })
  const { result, lists } = await screening.screen(destination)
  if (result !== 'clear')
    throw new Failure(
      'aml_blocked',
      `The AML policy ${result === 'blocked' ? 'blocks' : 'wants a review of'} the destination.`,
      {
        screening: { result, lists },
        hint: 'Pay another destination; the account and its limits are not affected.',
      },
    )
  return { result, lists }
}
