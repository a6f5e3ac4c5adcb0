/** Authorization of transfers without a signature of their own. */
import { Failure } from '../../../core/failures/failure.ts'
import type { Wallet } from '../../../providers/chain/port.ts'
import type { TransferAuthorization } from './send-transfer.ts'

/**
 * Authorizes a transfer by the gateway: as the wallet's owner, or within the key's on-chain allowance.
 * @param keyId calling key; null for a person. @throws Failure `signature_rejected` for a person whose own key owns the wallet.
 */
export function gatewayAuthorization(
  { owner }: Pick<Wallet, 'owner'>,
  keyId: string | null,
): TransferAuthorization {
  if (owner.kind === 'gateway') return { signer: 'sandbox', authorization: { kind: 'gateway' } }
  if (keyId === null)
    throw new Failure(
      'signature_rejected',
      'The owner’s own key must sign this payment from the wallet. Nothing was sent.',
      { hint: 'Sign an intent of the payment, or let one of your agents pay within its allowance.' },
    )
  return { signer: 'agent', authorization: { kind: 'allowance', agentId: keyId } }
}
