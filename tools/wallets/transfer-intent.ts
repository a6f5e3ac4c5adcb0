import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { denyUnscreened } from '../../src/kernel/gates/spend.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { complianceFactsFrom } from '../../src/people/compliance/transfer-facts.ts'
import { onChain } from '../../src/providers/chain/chains.ts'
import { intentView, makeTransferIntent } from '../../src/rails/wallets/signing/make-intent.ts'
import { lowerCase } from '../../src/rails/wallets/store.ts'
import { admitTransfer } from '../../src/rails/wallets/transfers/admit-transfer.ts'
import { loadTransferFacts } from '../../src/rails/wallets/transfers/load-transfer-facts.ts'
import {
  refineAmount,
  transferMembers,
  withParsedAmount,
} from '../../src/rails/wallets/transfers/transfer-members.ts'

export default defineTool({
  name: 'wallets.transfer_intent',
  title: 'Transfer intent',
  summary: 'Get the intent to sign for a transfer of stablecoins, valid for five minutes.',
  description:
    'A person signs `challenge` with a passkey or `typedData` with a registered EVM key; an agent signs the 32 bytes of `hash` with its Ed25519 key. Then send the signature to POST /api/wallets/transfer with the same members and `intentId`. Nothing is reserved until then.',
  route: 'POST /api/wallets/transfer/intent',
  who: 'account',
  scopes: ['wallets:transfer'],
  effect: 'write',
  proof: 'none',
  ownTransactions: true,
  mcp: false,
  payee: 'destination',
  input: z.strictObject(transferMembers).superRefine(refineAmount).transform(withParsedAmount),
  output: intentView,
  failures: [
    'aml_blocked',
    'chain_not_supported',
    'screening_unavailable',
    'rates_unavailable',
    'not_found',
    'conflict',
  ],
  example: { destination: '0x000000000000000000000000000000000000dEaD', amount: '1.25', token: 'USDC' },
  chain: (context, { chain }) => onChain(context, chain),
  run: async (context, { money, destination, safeAddress }) => {
    const chain = context.chain.name
    const caller = requireCaller(context)
    const accountId = caller.account.id
    const keyId = caller.kind === 'key' ? caller.key.id : null
    const request = { accountId, keyId, destination, chain, money }
    const known = await loadTransferFacts(context, request)
    const { parties } = known
    const facts = complianceFactsFrom(known.compliance, destination)
    const { aml } = await admitTransfer(context, { ...known, ...request, facts, safeAddress })
    if (aml.screening.result !== 'clear')
      await denyUnscreened(
        'wallets.transfer_intent',
        {
          category: 'transfer',
          money,
          place: null,
          chain,
          counterparty: destination,
          aml,
          facts: { screening: aml.screening },
        },
        context,
      )
    const { wallet } = parties
    if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet.')
    return makeTransferIntent(context, {
      wallet,
      keyId,
      transfer: { token: money.asset, units: money.units, destination: lowerCase(destination), chain },
      at: context.now,
    })
  },
})
