import { z } from 'zod'
import { requirePerson } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { keyState } from '../../src/people/identity/keys/key-state.ts'
import { pauseKeys } from '../../src/people/identity/keys/owned-keys.ts'
import { cancelStoppedOrders } from '../../src/rails/investing/stopped-orders.ts'

export default defineTool({
  name: 'agents.pause',
  title: 'Stop all agents',
  summary: 'Pause every active key of the account at once: agents, OAuth grants and API keys.',
  description:
    'Needs no second factor. Everything except reads is blocked on every instance; open orders of the keys are canceled and their waiting approvals rejected. Each is resumed with PATCH; keys stopped together have the same `pausedAt`.',
  route: 'POST /api/agents/pause',
  who: 'person',
  effect: 'write',
  proof: 'none',
  stops: true,
  input: z.strictObject({}),
  output: z.strictObject({ paused: z.int().describe('Number of keys that were active.') }),
  failures: [],
  example: {},
  run: async (context) => {
    const { account } = requirePerson(context)
    const paused = await pauseKeys(context.database, { accountId: account.id, at: context.now })
    context.afterCommit((database) => cancelStoppedOrders({ ...context, database }, account.id))
    for (const key of paused)
      await recordChange(context, {
        action: 'key.paused',
        object: { kind: 'key', id: key.id },
        before: keyState({ ...key, status: 'active' }),
        after: keyState(key),
      })
    return { paused: paused.length }
  },
})
