import type { Stablecoin } from '../../money/money.ts'
import type { Address, Hex } from '../../providers/chain.ts'

/** A payment that its payer has signed. @property units smallest units. Times are seconds. */
export interface SignedPayment {
  readonly kind: 'authorization' | 'permit'
  readonly token: Stablecoin
  readonly units: bigint
  readonly payer: Address
  readonly destination: Address
  /** 32 bytes as hex; of a permit the number that the token counts. */
  readonly nonce: string
  readonly validAfter: bigint
  /** Of an authorization the first second that is too late, of a permit the last that is not. */
  readonly validBefore: bigint
  readonly signature: Hex
}
