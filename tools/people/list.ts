import { z } from 'zod'
import { requirePerson } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { listInvitations } from '../../src/people/identity/members/invitations.ts'
import { listPeople } from '../../src/people/identity/members/memberships.ts'
import {
  invitationView,
  personView,
  viewInvitation,
  viewPeople,
} from '../../src/people/identity/members/person-view.ts'

export default defineTool({
  name: 'people.list',
  title: 'People',
  summary: 'List the people of the account and what each of them may do, and the open invitations.',
  description: 'An account has 50 people and open invitations at most, so there is one page.',
  route: 'GET /api/people',
  who: 'person',
  effect: 'read',
  // Everybody sees with whom they share an account.
  role: 'accountant',
  input: z.strictObject({}),
  output: z.strictObject({
    people: z.array(personView).describe('People, in the order in which they joined.'),
    invitations: z
      .array(invitationView)
      .describe('Open invitations, newest first; empty for all but owners.'),
    nextCursor: z.null().describe('Always null.'),
  }),
  failures: [],
  example: {},
  run: async (context) => {
    const { account, person } = requirePerson(context)
    const people = await listPeople(context.database, account.id)
    const invitations =
      person.role === 'owner'
        ? await listInvitations(context, { accountId: account.id, now: context.now })
        : []
    return {
      people: await viewPeople(context, people, person),
      invitations: invitations.map(viewInvitation),
      nextCursor: null,
    }
  },
})
