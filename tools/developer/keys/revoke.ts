import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { developerKinds, revokeKey } from '../../../src/people/identity/keys/owned-keys.ts'
import { sendSecurityNotice } from '../../../src/people/identity/security-notices.ts'
import { endStoppedCards } from '../../../src/rails/cards/single-use.ts'
import { cancelStoppedOrders } from '../../../src/rails/investing/stopped-orders.ts'

export default defineTool({
  name: 'developer.keys.revoke',
  title: 'Revoke an API key',
  summary: 'Revoke a developer API key: every instance rejects it from the next request on.',
  description: 'It cannot be undone. What the key reserved is settled or released as usual.',
  route: 'DELETE /api/developer/keys/{id}',
  who: 'person',
  effect: 'write',
  proof: 'none',
  stops: true,
  input: z.strictObject({ id: z.string().max(64).describe('`key_…`') }),
  output: z.strictObject({ revoked: z.boolean().describe('Always true.') }),
  failures: ['not_found'],
  example: { id: 'key_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const owned = { accountId: requirePerson(context).account.id, kinds: developerKinds }
    if (!(await revokeKey(context.database, { ...owned, id })))
      throw new Failure('not_found', 'You have no such API key.', {
        hint: 'GET /api/developer/keys lists the unrevoked keys.',
      })
    context.afterCommit((database) => cancelStoppedOrders({ ...context, database }, owned.accountId))
    context.afterCommit((database) =>
      endStoppedCards(database, { accountId: owned.accountId, at: context.now }),
    )
    await sendSecurityNotice(context, {
      accountId: owned.accountId,
      notice: 'api_key_revoked',
      at: context.now,
    })
    await recordChange(context, { action: 'key.revoked', object: { kind: 'key', id } })
    return { revoked: true }
  },
})
