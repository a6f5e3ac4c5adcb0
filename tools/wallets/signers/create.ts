import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { sendSecurityNotice } from '../../../src/people/identity/security-notices.ts'
import { requireIdleWallet } from '../../../src/rails/wallets/escrow/escrow.ts'
import { typedDataView } from '../../../src/rails/wallets/signing/make-intent.ts'
import { signerChallenge, verifySignerProof } from '../../../src/rails/wallets/signing/signer-proof.ts'
import { insertEoaSigner, transferOwnership } from '../../../src/rails/wallets/signing/signer-store.ts'
import { signerView, viewEoa } from '../../../src/rails/wallets/signing/signer-view.ts'
import { findOwnedWallet } from '../../../src/rails/wallets/store.ts'
import { evmAddress } from '../../../src/rails/wallets/transfers/transfer-members.ts'

const evmSignature = z
  .templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]{130}$/)])
  .describe(
    'EIP-712 signature of the typed data by the key, 65 bytes as 0x hex. Absent: returns the typed data.',
  )

export default defineTool({
  name: 'wallets.signers.create',
  title: 'Register an EVM key',
  summary:
    'Register an EVM key that signs for the wallet: first get the typed data, then send its signature.',
  description:
    'The first signer of an account becomes the on-chain owner of its wallet: the gateway cannot move money without that key, so keep it safe. Later signers are verified by the gateway and spend within the owner’s allowances.',
  route: 'POST /api/wallets/signers',
  who: 'person',
  effect: 'write',
  proof: 'recent',
  input: z.strictObject({
    address: evmAddress.describe('EVM address of the key: an externally owned account, not a contract.'),
    signature: evmSignature.optional(),
  }),
  output: z.strictObject({
    typedData: typedDataView.optional(),
    expiresAt: z.string().optional().describe('When `typedData` expires, ISO 8601 UTC.'),
    signer: signerView.optional().describe('Registered signer; returned when a signature was sent.'),
  }),
  failures: ['signature_rejected', 'wallet_busy', 'conflict', 'not_found'],
  example: { address: '0x00000000000000000000000000000000000000A1' },
  run: async (context, { address, signature }) => {
    const { database, chain, settings, now: at } = context
    const accountId = requirePerson(context).account.id
    const wallet = await findOwnedWallet(database, accountId)
    if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet.')
    const registration = {
      secret: settings.sessionKey,
      chain,
      accountId,
      wallet: wallet.address,
      address,
      at,
    }
    if (signature === undefined) {
      const { typedData, expiresAt } = signerChallenge(registration)
      return { typedData: typedDataView.parse(typedData), expiresAt: expiresAt.toISOString() }
    }
    if (!(await verifySignerProof(registration, signature)))
      throw new Failure(
        'signature_rejected',
        'The signature does not match the key and its current typed data.',
        {
          hint: 'Send only {address}, sign "typedData" with that key, and send {address, signature} within five minutes.',
        },
      )
    await requireIdleWallet(context, accountId)
    const signer = await insertEoaSigner(context, { accountId, address, at })
    if (signer === undefined)
      throw new Failure('conflict', 'This key already signs for the account.', {
        hint: 'GET /api/wallets/signers lists every signer.',
      })
    await transferOwnership(database, accountId, { kind: 'eoa', address })
    await sendSecurityNotice(context, { accountId, notice: 'signer_added', at })
    await recordChange(context, {
      action: 'signer.added',
      object: { kind: 'signer', id: signer.id },
      after: { type: 'eoa', address },
    })
    return { signer: viewEoa(signer) }
  },
})
