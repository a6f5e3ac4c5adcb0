/**
 * The payment of an `upto` purchase, from an address of its own: its first permit (EIP-2612) lets Permit2 take the maximum, one signed
 * transfer of Permit2 lets the seller's facilitator take up to that through the proxy of x402, and its second permit takes all of it back.
 * Both permits have fixed nonces, so that no late call can give the permission again.
 * @see https://github.com/coinbase/x402/blob/main/specs/schemes/upto/scheme_upto_evm.md
 */
import { hexToBigInt, parseAbi } from 'viem'
import type { LocalAccount } from 'viem/accounts'
import { z } from 'zod'
import type { Clock } from '../../core/base/clock.ts'
import type { Json } from '../../core/base/json.ts'
import { signedPaymentTypes, uptoTypes } from '../../core/base/signed-payment-types.ts'
import { Failure } from '../../core/failures/failure.ts'
import { type Address, type Hex, tokenAddress } from '../../providers/chain/port.ts'
import { readTokenDomain, splitSignature, type TokenReader } from './authorization.ts'
import type { PayableAsset } from './terms.ts'

const PERMIT2: Address = '0x000000000022D473030F116dDEE9F6B43aC78BA3'
const PROXY: Address = '0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002'

/** Nonces of an address's two permits. */
const ALLOWING = 0n
const TAKING_BACK = 1n
/** How long a permit waits for a block. */
const PERMIT_SECONDS = 600
const PERMIT_WAIT_MS = 10_000

const abi = parseAbi([
  'function nonces(address owner) view returns (uint256)',
  'function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)',
])

interface PermitParts {
  readonly chain: TokenReader
  readonly clock: Clock
}

/**
 * Lets Permit2 take the maximum of a purchase; the sponsor pays the gas. Safe to repeat. The money must be at the address.
 * @throws Failure `provider_unavailable` when the chain did not confirm it; nothing is signed for the seller then.
 */
export async function allowPermit2(
  parts: PermitParts,
  account: LocalAccount,
  { asset, units }: { asset: PayableAsset; units: bigint },
): Promise<void> {
  try {
    await bringPermit(parts, account, { asset, value: units, nonce: ALLOWING })
  } catch (cause) {
    throw new Failure(
      'provider_unavailable',
      'The chain has not confirmed the permission for this purchase in time. Nothing is paid yet.',
      {
        retryAfter: 5,
        hint: 'Repeat this call with the same idempotency key to go on; otherwise it is given up, and the money is available again.',
      },
      { cause },
    )
  }
}

/** Takes the permission back, so that nothing more can be settled. @throws when the chain does not confirm it. */
export async function takeBackPermit(
  parts: PermitParts,
  account: LocalAccount,
  { asset }: { asset: PayableAsset },
): Promise<void> {
  await bringPermit(parts, account, { asset, value: 0n, nonce: TAKING_BACK })
}

async function bringPermit(
  { chain, clock }: PermitParts,
  { address: owner, signTypedData }: LocalAccount,
  { asset, value, nonce }: { asset: PayableAsset; value: bigint; nonce: bigint },
): Promise<void> {
  const address = tokenAddress(chain, asset)
  const isTaken = async () =>
    z
      .bigint()
      .parse(await chain.signer.readContract({ address, abi, functionName: 'nonces', args: [owner] })) > nonce
  if (await isTaken()) return
  const deadline = BigInt(Math.floor(clock().getTime() / 1000) + PERMIT_SECONDS)
  const signature = await signTypedData({
    domain: await readTokenDomain(chain, asset),
    types: signedPaymentTypes,
    primaryType: 'Permit',
    message: { owner, spender: PERMIT2, value, nonce, deadline },
  })
  try {
    const args = [owner, PERMIT2, value, deadline, ...splitSignature(signature)]
    const hash = await chain.signer.writeContract({ address, abi, functionName: 'permit', args })
    await chain.signer.waitForTransactionReceipt({ hash, timeout: PERMIT_WAIT_MS })
  } catch (error) {
    // Another call may have brought it first.
    if (!(await isTaken())) throw error
    return
  }
  if (!(await isTaken())) throw new Error(`The token did not take permit ${nonce} of ${owner}.`)
}

const acceptedOffer = z.looseObject({
  accepted: z.looseObject({
    extra: z.looseObject({ facilitatorAddress: z.templateLiteral(['0x', z.string()]) }),
  }),
  resource: z.unknown().optional(),
  extensions: z.unknown().optional(),
})

/** A transfer for a facilitator to settle. @property deadline last second in which the proxy takes it. */
export interface UptoPayment {
  readonly token: Address
  readonly to: Address
  readonly maximum: bigint
  readonly nonce: Hex
  readonly deadline: bigint
}

/** Signs a payment, and writes the header that carries it. */
export async function signUpto(
  account: LocalAccount,
  { token, to, maximum, nonce, deadline }: UptoPayment,
  { chainId, offer }: { chainId: number; offer: Json },
): Promise<{ readonly name: string; readonly value: string }> {
  const { accepted, resource, extensions } = acceptedOffer.parse(offer)
  const permitted = { token, amount: maximum }
  const witness = { to, facilitator: accepted.extra.facilitatorAddress, validAfter: 0n }
  const signature = await account.signTypedData({
    domain: { name: 'Permit2', chainId, verifyingContract: PERMIT2 },
    types: uptoTypes,
    primaryType: 'PermitWitnessTransferFrom',
    message: { permitted, spender: PROXY, nonce: hexToBigInt(nonce), deadline, witness },
  })
  const permit2Authorization = {
    from: account.address,
    permitted: { token, amount: maximum.toString() },
    spender: PROXY,
    nonce: hexToBigInt(nonce).toString(),
    deadline: deadline.toString(),
    witness: { ...witness, validAfter: '0' },
  }
  const payment = {
    x402Version: 2,
    resource: resource ?? undefined,
    accepted,
    payload: { signature, permit2Authorization },
    extensions: extensions ?? undefined,
  }
  return { name: 'PAYMENT-SIGNATURE', value: Buffer.from(JSON.stringify(payment)).toString('base64') }
}
