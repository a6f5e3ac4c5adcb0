/** A signer as its owner sees it. */
import { getAddress } from 'viem'
import { z } from 'zod'
import type { EoaSigner } from './signer-store.ts'

/** A signer of an account: passkey, EVM key or agent. */
export const signerView = z.strictObject({
  id: z.string().describe('`pk_…`, `sgn_…` or `key_…`'),
  type: z.enum(['passkey', 'eoa', 'agent']).describe('`eoa`: an EVM key.'),
  address: z.string().optional().describe('EVM address of an EVM key.'),
  createdAt: z.string().describe('When it was registered, ISO 8601 UTC.'),
})
signerView.register(z.globalRegistry, { id: 'Signer' })

export function viewEoa({ id, address, createdAt }: EoaSigner): z.input<typeof signerView> {
  return { id, type: 'eoa', address: getAddress(address), createdAt: createdAt.toISOString() }
}
