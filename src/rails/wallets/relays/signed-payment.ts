import type { Stablecoin } from '../../../core/money/money.ts'
import type { Address, Hex } from '../../../providers/chain/port.ts'

/** A payment signed by its payer. @property units smallest units. Times are Unix seconds. */
export interface SignedPayment {
  readonly kind: 'authorization' | 'permit'
  readonly token: Stablecoin
  readonly units: bigint
  readonly payer: Address
  readonly destination: Address
  /** 32 bytes as hex; for a permit, the token's nonce counter as a decimal. */
  readonly nonce: string
  readonly validAfter: bigint
  /** For an authorization, the first second that is too late; for a permit, the last valid second. */
  readonly validBefore: bigint
  readonly signature: Hex
}
