import { z } from 'zod'
import { readQuorums, requireEnoughPeople } from '../../src/books/approvals/quorum.ts'
import { requirePerson } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { cancelInvitationsBy } from '../../src/people/identity/members/invitations.ts'
import {
  changeRole,
  keepFounder,
  listPeople,
  lockPeople,
} from '../../src/people/identity/members/memberships.ts'
import { personView, roleField, viewPeople } from '../../src/people/identity/members/person-view.ts'
import { endKeys, requireOneOf, requireOwner } from '../../src/people/identity/members/remove-person.ts'
import { sendSecurityNotice } from '../../src/people/identity/security-notices.ts'

export default defineTool({
  name: 'people.update',
  title: 'Change a role',
  summary: 'Change what one of the people of the account may do; it applies to their next request.',
  description:
    'An owner who becomes less loses what they let in: their programs lose access, and keys that they made are paused. `conflict`: the last owner stays an owner, and the people left must be enough for the approvals that the account requires.',
  route: 'PATCH /api/people/{id}',
  who: 'person',
  effect: 'write',
  proof: 'step-up',
  stops: true,
  input: z.strictObject({
    id: z.string().max(64).describe('The person: `acct_…`'),
    role: roleField,
  }),
  output: personView,
  failures: ['not_found', 'conflict'],
  example: { id: 'acct_01h455vb4pex5vsknk084sn02q', role: 'viewer' },
  run: async (context, { id, role }) => {
    const { account, person } = requirePerson(context)
    const { database, now: at } = context
    const accountId = account.id
    await lockPeople(database, [accountId])
    const people = await listPeople(database, accountId)
    const before = requireOneOf(people, id)
    const after = { ...before, role }
    requireOwner(people.map((one) => (one === before ? after : one)))
    if (role !== before.role) {
      await keepFounder(database, account)
      await changeRole(database, after)
      await requireEnoughPeople(database, accountId, await readQuorums(database, accountId))
      if (role !== 'owner') await cancelInvitationsBy(database, { accountId, personId: id })
      const { revoked, paused } =
        before.role === 'owner' ? await endKeys(database, { ...after, at }) : { revoked: 0, paused: 0 }
      await sendSecurityNotice(context, { accountId: id, notice: 'role_changed', at })
      await recordChange(context, {
        action: 'person.role_changed',
        object: { kind: 'person', id },
        before: { role: before.role },
        after: { role, grantsRevoked: revoked, keysPaused: paused },
      })
    }
    const [view] = await viewPeople(context, [after], person)
    if (view === undefined) throw new Error(`${id} has no view`)
    return view
  },
})
