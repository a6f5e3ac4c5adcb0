/** Authorization of transfers without a signature of their own. */
import type { Wallet } from '../../providers/chain.ts'
import type { TransferAuthorization } from './send-transfer.ts'

/**
 * Authorizes a transfer by the gateway: as the wallet's owner, or within the key's on-chain allowance.
 * @param keyId calling key; null for a person.
 */
export function gatewayAuthorization(
  { owner }: Pick<Wallet, 'owner'>,
  keyId: string | null,
): TransferAuthorization {
  if (owner.kind === 'gateway') return { signer: 'sandbox', authorization: { kind: 'gateway' } }
  return { signer: 'agent', authorization: { kind: 'allowance', agentId: keyId ?? '' } }
}
