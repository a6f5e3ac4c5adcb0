/** The authorization of transfers that no signature of their own covers. */
import type { Wallet } from '../../providers/chain.ts'
import type { TransferAuthorization } from './send-transfer.ts'

/**
 * Authorizes a transfer by the gateway: as the wallet's owner, or within the allowance that the owner gave the key.
 * @param keyId of the agent's key, or of any other; null for a person.
 */
export function gatewayAuthorization(
  { owner }: Pick<Wallet, 'owner'>,
  keyId: string | null,
): TransferAuthorization {
  if (owner.kind === 'gateway') return { signer: 'sandbox', authorization: { kind: 'gateway' } }
  return { signer: 'agent', authorization: { kind: 'allowance', agentId: keyId ?? '' } }
}
