/** Whose word moves money, where nobody signs for the payment itself. */
import type { Wallet } from '../providers/chain.ts'
import type { TransferAuthorization } from './send-transfer.ts'

/**
 * The gateway's own word: as the wallet's owner, or from the allowance that its owner gave the key.
 * @param keyId of the agent's key, or of any other; null for a person.
 */
export function gatewayAuthorization(
  { owner }: Pick<Wallet, 'owner'>,
  keyId: string | null,
): TransferAuthorization {
  if (owner.kind === 'gateway') return { signer: 'sandbox', authorization: { kind: 'gateway' } }
  return { signer: 'agent', authorization: { kind: 'allowance', agentId: keyId ?? '' } }
}
