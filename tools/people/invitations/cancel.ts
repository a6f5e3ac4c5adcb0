import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { cancelInvitation } from '../../../src/people/identity/members/invitations.ts'

export default defineTool({
  name: 'people.invitations.cancel',
  title: 'Cancel an invitation',
  summary: 'Cancel an open invitation: its code is worth nothing any more.',
  description: 'An accepted one is ended by removing the person.',
  route: 'DELETE /api/people/invitations/{id}',
  who: 'person',
  effect: 'write',
  proof: 'none',
  stops: true,
  input: z.strictObject({ id: z.string().max(64).describe('`inv_…`') }),
  output: z.strictObject({ canceled: z.literal(true).describe('Always true.') }),
  failures: ['not_found'],
  example: { id: 'inv_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const accountId = requirePerson(context).account.id
    if (!(await cancelInvitation(context.database, { accountId, id, now: context.now })))
      throw new Failure('not_found', 'The account has no such open invitation.', {
        hint: 'GET /api/people lists the open ones.',
      })
    await recordChange(context, { action: 'invitation.canceled', object: { kind: 'invitation', id } })
    return { canceled: true as const }
  },
})
