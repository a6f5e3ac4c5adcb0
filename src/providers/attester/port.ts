/**
 * Attesters of CCTP v2: they sign what was burned on one chain, so that it can be minted on another. Their word is compared with the
 * burn's own log before anything is minted. Adapters: `iris` (Circle), `sandbox`.
 */
import type { Hex } from '../chain/port.ts'

/** An attested message. @property message with everything that an attester fills in. @property attestation its signatures. */
export interface AttestedMessage {
  readonly message: Hex
  readonly attestation: Hex
}

/** A fee, in millionths of what is burned. */
export interface BurnFees {
  /** Null: no such transfers between the chains. */
  readonly fast: bigint | null
  readonly standard: bigint | null
}

/** @property source domain of the chain. */
export interface BurnTransaction {
  readonly source: number
  readonly transactionHash: Hex
}

export interface Attester {
  /** @throws Error without a usable answer; its message is a reason, such as `timeout`. */
  fees(
    chains: { readonly source: number; readonly destination: number },
    signal: AbortSignal,
  ): Promise<BurnFees>
  /** Finds the attested messages of a transaction; those that are not attested yet are absent. @throws Error without an answer. */
  find(burn: BurnTransaction): Promise<readonly AttestedMessage[]>
  /** Asks for an attestation that has expired to be made again. @throws Error without an answer. */
  renew(nonce: Hex): Promise<void>
  /** Sandbox: sets how it behaves from now on. Absent: it cannot be told. */
  setMode?(mode: BridgeMode, at: Date): Promise<void>
}

/** How the sandbox’s attester behaves. */
export const bridgeModes = ['normal', 'late', 'lost', 'other-amount', 'other-receiver', 'replayed'] as const
export type BridgeMode = (typeof bridgeModes)[number]
