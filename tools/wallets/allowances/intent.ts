import { z } from 'zod'
import { storedPolicy } from '../../../policies/policy.ts'
import { allowanceAmount, toUsdMicros } from '../../../policies/usd.ts'
import { requireNoDebt } from '../../../src/books/debts/debts.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { chainInput } from '../../../src/core/money/chains.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { agentKinds, developerKinds, findOwnKey } from '../../../src/people/identity/keys/owned-keys.ts'
import { onChain } from '../../../src/providers/chain/chains.ts'
import { CARDS_AGENT } from '../../../src/providers/chain/port.ts'
import { requireOwnWallet } from '../../../src/rails/wallets/allowances/set-allowance.ts'
import { intentView, makeAllowanceIntent } from '../../../src/rails/wallets/signing/make-intent.ts'
import { findOwnedWallet } from '../../../src/rails/wallets/store.ts'
import type { Connection } from '../../../src/storage/database.ts'

export default defineTool({
  name: 'wallets.allowances.intent',
  title: 'Allowance intent',
  summary: 'Get the intent that the owner signs to let an agent, or cards, spend from the wallet on chain.',
  description:
    'Valid for five minutes. The chain enforces the allowance even against a holder of the gateway’s keys; the spend policy applies in addition. Sign `challenge` with the passkey, or `typedData` with the EVM key, that owns the wallet, and send the signature to POST /api/wallets/allowances.',
  route: 'POST /api/wallets/allowances/intent',
  who: 'person',
  effect: 'write',
  proof: 'none',
  stops: true,
  input: z.strictObject({
    agentId: z.string().max(64).describe('`key_…`: one of your keys; `cards`: all your cards combined.'),
    dailyMax: allowanceAmount
      .optional()
      .describe(
        'Maximum in USD per UTC day; 0: nothing. Default: the daily budget of the key’s spend policy; required for `cards`.',
      ),
    chain: chainInput
      .optional()
      .describe('Chain by name: each has an allowance of its own. Default: the first of this deployment.'),
  }),
  output: intentView,
  failures: ['not_found', 'wallet_busy', 'conflict', 'chain_not_supported'],
  example: { agentId: 'key_01h455vb4pex5vsknk084sn02q', dailyMax: '50' },
  chain: (context, { chain }) => onChain(context, chain),
  run: async (context, { agentId, dailyMax: requested }) => {
    const { database, now: at } = context
    const accountId = requirePerson(context).account.id
    // Cards pay the debt.
    if (agentId !== CARDS_AGENT) await requireNoDebt(database, accountId)
    const budget =
      agentId === CARDS_AGENT ? undefined : await findBudget(database, { accountId, id: agentId })
    const wallet = await findOwnedWallet(database, accountId)
    if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet.')
    requireOwnWallet(wallet)
    const dailyMax = requested ?? budget
    if (dailyMax === undefined)
      throw new Failure('invalid_request', `dailyMax: is required: ${agentId} has no spend policy`, {
        issues: [{ path: 'dailyMax', message: `is required: ${agentId} has no spend policy` }],
      })
    const allowance = { agentId, dailyMicros: toUsdMicros(dailyMax) }
    return makeAllowanceIntent(context, { wallet, allowance, dailyMax, at })
  },
})

/** Reads the daily budget of a key with a policy. @throws Failure `not_found`. */
async function findBudget(
  database: Connection,
  { accountId, id }: { accountId: string; id: string },
): Promise<string | undefined> {
  const kinds = [...agentKinds, ...developerKinds]
  const key = await findOwnKey(database, { accountId, kinds, id, isLocked: false })
  if (key === undefined) throw new Failure('not_found', 'You have no such key.')
  return storedPolicy.nullable().parse(key.policy ?? null)?.dailyBudget.max
}
