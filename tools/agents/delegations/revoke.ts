import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requireCaller } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { findDelegation } from '../../../src/people/identity/keys/delegations.ts'
import { ownedKinds, revokeKey } from '../../../src/people/identity/keys/owned-keys.ts'
import { endStoppedCards } from '../../../src/rails/cards/single-use.ts'
import { cancelStoppedOrders } from '../../../src/rails/investing/stopped-orders.ts'

export default defineTool({
  name: 'agents.delegations.revoke',
  title: 'Take a delegation back',
  summary: 'Revoke a key below your own, and all keys below it, permanently and at once.',
  description: 'What is left of its earmark returns. What it reserved is settled or released as usual.',
  route: 'DELETE /api/agents/delegations/{id}',
  who: 'account',
  scopes: ['agents:delegate'],
  effect: 'write',
  proof: 'none',
  stops: true,
  whilePaused: true,
  mcp: true,
  input: z.strictObject({ id: z.string().max(64).describe('`agentId`: `key_…`') }),
  output: z.strictObject({ revoked: z.boolean().describe('Always true.') }),
  failures: ['not_found'],
  example: { id: 'key_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const { database } = context
    const caller = requireCaller(context)
    const accountId = caller.account.id
    const below = caller.kind === 'key' ? caller.key.id : null
    const key = await findDelegation(database, { accountId, below, id })
    if (key === undefined || !(await revokeKey(database, { accountId, kinds: ownedKinds, id })))
      throw new Failure('not_found', 'There is no such key below yours.')
    context.afterCommit((database) => cancelStoppedOrders({ ...context, database }, accountId))
    context.afterCommit((database) => endStoppedCards(database, { accountId, at: context.now }))
    await recordChange(context, { action: 'key.revoked', object: { kind: 'key', id }, mayBePaused: true })
    return { revoked: true }
  },
})
