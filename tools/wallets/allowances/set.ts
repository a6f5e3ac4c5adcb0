import { z } from 'zod'
import { usdOfMicros } from '../../../policies/usd.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { takeSponsorship } from '../../../src/kernel/gates/rate.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { readAssertion } from '../../../src/people/identity/passkeys/passkey-response.ts'
import { passkeySigners } from '../../../src/people/identity/passkeys/passkey-signature.ts'
import { CARDS_AGENT } from '../../../src/providers/chain/port.ts'
import { expediteSettlements } from '../../../src/rails/cards/settlements.ts'
import { allowanceView, viewAllowance } from '../../../src/rails/wallets/allowances/allowance-view.ts'
import { setAllowance } from '../../../src/rails/wallets/allowances/set-allowance.ts'
import { findOwnedWallet } from '../../../src/rails/wallets/store.ts'

export default defineTool({
  name: 'wallets.allowances.set',
  title: 'Set an allowance',
  summary: 'Set the on-chain allowance of an agent, or of cards, with the owner’s signature.',
  description:
    'Waits up to three seconds for the chain; after `settlement_pending`, send the same request again. The chain executes an intent at most once.',
  route: 'POST /api/wallets/allowances',
  who: 'person',
  effect: 'write',
  proof: 'signature',
  ownTransactions: true,
  stops: true,
  input: z.strictObject({
    intentId: z.string().max(64).describe('`int_…` from POST /api/wallets/allowances/intent.'),
    signature: z
      .string()
      .min(1)
      .max(8192)
      .describe(
        'Signature of the wallet’s owner: a passkey’s assertion (base64url of its JSON), or EIP-712 (0x hex).',
      ),
  }),
  output: allowanceView,
  failures: [
    'signature_rejected',
    'wallet_busy',
    'conflict',
    'not_found',
    'chain_not_supported',
    'settlement_pending',
    'provider_unavailable',
  ],
  example: { intentId: 'int_01h455vb4pex5vsknk084sn02q', signature: 'base64url' },
  run: async (context, { intentId, signature }) => {
    const person = requirePerson(context)
    const { account } = person
    await takeSponsorship(context, person, context.now)
    const wallet = await findOwnedWallet(context.database, account.id)
    if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet.')
    const assertion = readAssertion(signature)?.response
    const allowance = await setAllowance(
      {
        ...context,
        passkeys: passkeySigners(context),
        recordUse: (transaction, { agentId, dailyMicros }) =>
          recordChange(
            context,
            {
              // The journal records the owner's consent; the execution is recorded on the chain.
              action: 'allowance.authorized',
              object: { kind: agentId === CARDS_AGENT ? 'cards' : 'key', id: agentId },
              after: { dailyMax: usdOfMicros(dailyMicros) },
            },
            transaction,
          ),
      },
      { wallet, intentId, signature, assertion, at: context.now },
    )
    if (allowance.agentId === CARDS_AGENT)
      await expediteSettlements(context.database, { accountId: account.id, at: context.now })
    return viewAllowance(allowance)
  },
})
