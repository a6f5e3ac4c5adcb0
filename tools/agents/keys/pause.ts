import { z } from 'zod'
import { storedPolicy } from '../../../policies/policy.ts'
import { isScope } from '../../../policies/scopes.ts'
import { agentView, viewAgent } from '../../../src/books/spending/agent-view.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { keyState } from '../../../src/people/identity/keys/key-state.ts'
import { changeKey, findOwnKey, ownedKinds } from '../../../src/people/identity/keys/owned-keys.ts'
import { cancelStoppedOrders } from '../../../src/rails/investing/stopped-orders.ts'

export default defineTool({
  name: 'agents.keys.pause',
  title: 'Stop an agent',
  summary: 'The kill switch: block everything except reads of an agent at once, on every instance.',
  description:
    'Needs no second factor. The agent’s open orders are canceled and its waiting approvals rejected. PATCH the agent with status "active" to resume.',
  route: 'POST /api/agents/keys/{id}/pause',
  who: 'person',
  effect: 'write',
  proof: 'none',
  stops: true,
  policies: 'response',
  input: z.strictObject({ id: z.string().max(64).describe('`agentId`: `key_…`') }),
  output: agentView,
  failures: ['not_found'],
  example: { id: 'key_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const { database, now } = context
    const owned = { accountId: requirePerson(context).account.id, kinds: ownedKinds, isLocked: true }
    const key = await findOwnKey(database, { ...owned, id })
    if (key === undefined) throw new Failure('not_found', 'You have no such agent.')
    const paused = await changeKey(database, key, {
      name: key.name,
      status: 'paused',
      scopes: key.scopes.filter(isScope),
      policy: storedPolicy.nullable().parse(key.policy ?? null),
      expiresAt: key.expiresAt,
      at: now,
    })
    context.afterCommit((database) => cancelStoppedOrders({ ...context, database }, owned.accountId))
    await recordChange(context, {
      action: 'key.paused',
      object: { kind: 'key', id },
      before: keyState(key),
      after: keyState(paused),
    })
    return viewAgent(database, paused, context.onCalendar(now))
  },
})
