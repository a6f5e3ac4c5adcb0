import { z } from 'zod'
import { type Directions, looserMembers } from '../../../policies/directions.ts'
import { storedPolicy } from '../../../policies/policy.ts'
import { isScope } from '../../../policies/scopes.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { requireProofToLoosen } from '../../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { developerKeyView, viewDeveloperKey } from '../../../src/people/identity/keys/developer-key-view.ts'
import { keyState } from '../../../src/people/identity/keys/key-state.ts'
import { changeKey, developerKinds, findOwnKey } from '../../../src/people/identity/keys/owned-keys.ts'
import { cancelStoppedOrders } from '../../../src/rails/investing/stopped-orders.ts'

const change = z.strictObject({
  id: z.string().max(64).describe('`key_…`'),
  status: z.enum(['active', 'paused']).describe('New state: `paused` stops every spend, `active` resumes.'),
})

const directions: Directions<z.output<typeof change>> = {
  id: 'never',
  status: (before, after) => before === 'paused' && after === 'active',
}

export default defineTool({
  name: 'developer.keys.update',
  title: 'Pause or resume an API key',
  summary: 'Block everything except reads of a developer API key at once, or resume it.',
  description: 'Recovery of an account pauses all its keys. Resuming needs a fresh second factor.',
  route: 'PATCH /api/developer/keys/{id}',
  who: 'person',
  effect: 'write',
  proof: 'loosening',
  stops: true,
  policies: 'response',
  input: change,
  loosens: directions,
  output: developerKeyView,
  failures: ['not_found', 'step_up_required', 'mfa_enrollment_required'],
  example: { id: 'key_01h455vb4pex5vsknk084sn02q', status: 'paused' },
  run: async (context, { id, status }) => {
    const owned = { accountId: requirePerson(context).account.id, kinds: developerKinds, isLocked: true }
    const key = await findOwnKey(context.database, { ...owned, id })
    if (key === undefined) throw new Failure('not_found', 'You have no such API key.')
    const before = { status: key.status === 'paused' ? ('paused' as const) : ('active' as const) }
    requireProofToLoosen(context, looserMembers(directions, before, { status }))
    const changed = await changeKey(context.database, key, {
      name: key.name,
      status,
      scopes: key.scopes.filter(isScope),
      policy: storedPolicy.nullable().parse(key.policy ?? null),
      expiresAt: key.expiresAt,
      at: context.now,
    })
    if (status === 'paused')
      context.afterCommit((database) => cancelStoppedOrders({ ...context, database }, owned.accountId))
    await recordChange(context, {
      action: 'key.updated',
      object: { kind: 'key', id },
      before: keyState(key),
      after: keyState(changed),
    })
    return viewDeveloperKey(changed)
  },
})
