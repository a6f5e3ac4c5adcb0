import { parseAbi } from 'viem'
import { decimalOf } from '../../core/money/money.ts'
import { type Address, type Chain, type Hex, isRefusedCall } from '../../providers/chain/port.ts'

/** A signed EIP-3009 transfer, as a buyer sent it. @see https://eips.ethereum.org/EIPS/eip-3009 */
export interface SignedTransfer {
  readonly from: Address
  readonly to: Address
  readonly units: bigint
  readonly validAfter: bigint
  readonly validBefore: bigint
  readonly nonce: Hex
  readonly signature: Hex
}

/** @property isRepeated true if an earlier presentation of the same payment was settled. */
export type TakenPayment =
  | { readonly transaction: Hex; readonly isRepeated: boolean }
  | { readonly refused: string }

const abi = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
])

const RECEIPT_MS = 10_000

type PaymentChain = Pick<Chain, 'signer' | 'authorizationState' | 'transaction' | 'readBalance'>

/**
 * Settles a payment on the chain, unless it is settled already. Keeps no state: the chain tells what was paid, so every
 * gateway of a database gives the same answer.
 */
export async function takePayment(
  chain: PaymentChain,
  due: { readonly asset: Address; readonly payTo: Address; readonly units: bigint },
  payment: SignedTransfer,
): Promise<TakenPayment> {
  if (!isSame(payment.to, due.payTo)) return { refused: 'the payee is another one' }
  if (payment.units !== due.units) return { refused: 'the amount is another one' }
  const earlier = await findSettled(chain, due, payment)
  if (earlier !== null) return earlier
  const { from, to, units, validAfter, validBefore, nonce, signature } = payment
  try {
    const hash = await chain.signer.writeContract({
      address: due.asset,
      abi,
      functionName: 'transferWithAuthorization',
      args: [from, to, units, validAfter, validBefore, nonce, signature],
    })
    const { status } = await chain.signer.waitForTransactionReceipt({ hash, timeout: RECEIPT_MS })
    if (status === 'success') return { transaction: hash, isRepeated: false }
  } catch (error) {
    if (!isRefusedCall(error)) throw error
    // Another presentation may have been settled in between.
    return (
      (await findSettled(chain, due, payment)) ?? { refused: await explainRefusal(chain, payment, error) }
    )
  }
  return (await findSettled(chain, due, payment)) ?? { refused: 'the transaction was reverted' }
}

async function explainRefusal(
  chain: PaymentChain,
  { from, units }: SignedTransfer,
  error: Error,
): Promise<string> {
  const balance = await chain.readBalance('USDC', from)
  if (balance >= units) return error.message
  const [has, due] = [balance, units].map((amount) => decimalOf({ asset: 'USDC', units: amount }))
  return `the payer ${from} has ${has} USDC, and ${due} are due`
}

/** Null while the authorization is unused. */
async function findSettled(
  chain: PaymentChain,
  { asset }: { readonly asset: Address },
  { from, to, units, nonce }: SignedTransfer,
): Promise<TakenPayment | null> {
  const state = await chain.authorizationState({ token: asset, authorizer: from, nonce })
  if (state.status !== 'used')
    return state.status === 'unused' ? null : { refused: 'the authorization was canceled' }
  const found = await chain.transaction(state.transactionHash)
  const isPaid = found?.transfers.some(
    (transfer) =>
      isSame(transfer.token, asset) &&
      isSame(transfer.to, to) &&
      transfer.units === units &&
      transfer.authorization !== null &&
      isSame(transfer.authorization.authorizer, from) &&
      isSame(transfer.authorization.nonce, nonce),
  )
  return isPaid === true
    ? { transaction: state.transactionHash, isRepeated: true }
    : { refused: 'the nonce was used for another payment' }
}

function isSame(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}
