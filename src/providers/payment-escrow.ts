/**
 * Escrowed payments of x402 `auth-capture`, as their contract sees them: its addresses, terms and hashes.
 * @see https://github.com/base/commerce-payments
 */
import { encodeAbiParameters, keccak256, stringToHex, zeroAddress } from 'viem'
import type { Address, Hex } from './chain/port.ts'

/** The escrow (deployment 1.1 of `@x402/evm`), and what brings EIP-3009 payments into it. */
export const escrowAddress: Address = '0xf96815976523E00e65Be8f34cA5e64b4f41EB19c'
export const escrowCollectorAddress: Address = '0x8612dfdc421f80336cd14E8EF9cb1E765dB5ab88'

/**
 * Terms of a payment, which are its identity. Expiries are Unix seconds.
 * @property operator authorizes, captures and gives back. @property receiver gets what is captured, less the fee.
 * @property preApprovalExpiry until then it can be moved into escrow. @property authorizationExpiry from then on nothing is captured, and the payer takes the rest.
 */
export interface EscrowPayment {
  readonly operator: Address
  readonly payer: Address
  readonly receiver: Address
  readonly token: Address
  readonly maxAmount: bigint
  readonly preApprovalExpiry: number
  readonly authorizationExpiry: number
  readonly refundExpiry: number
  readonly minFeeBps: number
  readonly maxFeeBps: number
  readonly feeReceiver: Address
  readonly salt: bigint
}

/** The same in an ABI, for `parseAbi`. */
export const escrowPaymentStruct =
  'struct PaymentInfo { address operator; address payer; address receiver; address token; uint120 maxAmount; uint48 preApprovalExpiry; uint48 authorizationExpiry; uint48 refundExpiry; uint16 minFeeBps; uint16 maxFeeBps; address feeReceiver; uint256 salt; }'

const members = [
  { type: 'address' },
  { type: 'address' },
  { type: 'address' },
  { type: 'address' },
  { type: 'uint120' },
  { type: 'uint48' },
  { type: 'uint48' },
  { type: 'uint48' },
  { type: 'uint16' },
  { type: 'uint16' },
  { type: 'address' },
  { type: 'uint256' },
] as const

const TYPE_HASH = keccak256(
  stringToHex(
    'PaymentInfo(address operator,address payer,address receiver,address token,uint120 maxAmount,uint48 preApprovalExpiry,uint48 authorizationExpiry,uint48 refundExpiry,uint16 minFeeBps,uint16 maxFeeBps,address feeReceiver,uint256 salt)',
  ),
)

/** Computes the hash under which the escrow keeps a payment. */
export function hashEscrowPayment(payment: EscrowPayment, chainId: number): Hex {
  const { operator, payer, receiver, token, maxAmount, preApprovalExpiry, authorizationExpiry } = payment
  const inner = encodeAbiParameters(
    [{ type: 'bytes32' }, ...members],
    [
      TYPE_HASH,
      operator,
      payer,
      receiver,
      token,
      maxAmount,
      preApprovalExpiry,
      authorizationExpiry,
      payment.refundExpiry,
      payment.minFeeBps,
      payment.maxFeeBps,
      payment.feeReceiver,
      payment.salt,
    ],
  )
  return keccak256(
    encodeAbiParameters(
      [{ type: 'uint256' }, { type: 'address' }, { type: 'bytes32' }],
      [BigInt(chainId), escrowAddress, keccak256(inner)],
    ),
  )
}

/** Nonce of the EIP-3009 authorization that pays: the hash of the same terms without their payer. */
export function deriveEscrowNonce(payment: EscrowPayment, chainId: number): Hex {
  return hashEscrowPayment({ ...payment, payer: zeroAddress }, chainId)
}

const BINDING_TYPE_HASH = keccak256(
  stringToHex('x402AuthCaptureSaltBinding(address receiverAuthorizer,address policy,uint256 saltNonce)'),
)

/** Salt that binds a payment to who signs for its seller, and to a policy of its operator; zero: none. */
export function bindEscrowSalt(receiverAuthorizer: Address, policy: Address, saltNonce: bigint): bigint {
  const types = [{ type: 'bytes32' }, { type: 'address' }, { type: 'address' }, { type: 'uint256' }] as const
  return BigInt(
    keccak256(encodeAbiParameters(types, [BINDING_TYPE_HASH, receiverAuthorizer, policy, saltNonce])),
  )
}
