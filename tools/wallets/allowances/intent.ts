import { z } from 'zod'
import { spendPolicy } from '../../../policies/policy.ts'
import { policyAmount, usdMicrosOf } from '../../../policies/usd.ts'
import { Failure } from '../../../src/failure.ts'
import { agentKinds, developerKinds, findOwnKey } from '../../../src/identity/owned-keys.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { intentView, makeAllowanceIntent } from '../../../src/wallets/make-intent.ts'
import { requireOwnWallet } from '../../../src/wallets/set-allowance.ts'
import { findOwnedWallet } from '../../../src/wallets/store.ts'

export default defineTool({
  name: 'wallets.allowances.intent',
  title: 'Allowance to be signed',
  summary: 'Get what the owner signs to let an agent spend from the wallet on chain, fixed for five minutes.',
  description:
    'The chain itself keeps an agent within its allowance, whoever holds the gateway’s keys; its spend policy counts beside it. Sign `challenge` with the passkey, or `typedData` with the EVM key, that owns the wallet, and send it to POST /api/wallets/allowances.',
  route: 'POST /api/wallets/allowances/intent',
  who: 'person',
  scopes: [],
  effect: 'write',
  mcp: false,
  input: z.strictObject({
    agentId: z.string().max(64).describe('`key_…`: one of your keys.'),
    dailyMax: policyAmount
      .optional()
      .describe('USD a UTC day. Absent: the daily budget of the key’s spend policy.'),
  }),
  output: intentView,
  failures: ['not_found', 'conflict'],
  example: { agentId: 'key_01h455vb4pex5vsknk084sn02q', dailyMax: '50' },
  run: async (context, { agentId, dailyMax: asked }) => {
    const { database, now: at } = context
    const accountId = personOf(context).account.id
    const kinds = [...agentKinds, ...developerKinds]
    const key = await findOwnKey(database, { accountId, kinds, id: agentId, isLocked: false })
    if (key === undefined) throw new Failure('not_found', 'There is no such key of yours.')
    const wallet = await findOwnedWallet(database, accountId)
    if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet.')
    requireOwnWallet(wallet)
    const dailyMax = asked ?? spendPolicy.nullable().parse(key.policy ?? null)?.dailyBudget.max
    if (dailyMax === undefined)
      throw new Failure('invalid_request', 'dailyMax: is required: the key has no spend policy', {
        issues: [{ path: 'dailyMax', message: 'is required: the key has no spend policy' }],
      })
    const allowance = { agentId, dailyMicros: usdMicrosOf(dailyMax) }
    return makeAllowanceIntent(context, { wallet, allowance, dailyMax, at })
  },
})
