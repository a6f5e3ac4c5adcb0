import { z } from 'zod'
import { requirePerson } from '../../../src/kernel/context.ts'
import { takeBudgets } from '../../../src/kernel/gates/rate.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { requireChannel } from '../../../src/people/identity/codes/code-fields.ts'
import { parseDestination } from '../../../src/people/identity/codes/destinations.ts'
import { invitationMessage } from '../../../src/people/identity/members/invitation-message.ts'
import { cancelInvitation, openInvitation } from '../../../src/people/identity/members/invitations.ts'
import {
  invitationView,
  roleField,
  viewInvitation,
} from '../../../src/people/identity/members/person-view.ts'
import { messageBudget } from '../../../src/people/identity/message-budget.ts'

export default defineTool({
  name: 'people.invitations.create',
  title: 'Invite a person',
  summary: 'Mail an invitation to the account, which only the person of that address can accept.',
  description:
    'The mail has a code, valid for seven days and for that address alone. Inviting an address again replaces its invitation. `conflict`: the person is one of the account already, or it has 50 people and open invitations.',
  route: 'POST /api/people/invitations',
  who: 'person',
  effect: 'write',
  proof: 'step-up',
  ownTransactions: true,
  // Personal data is stored sealed in one place only, and not with the idempotent answers.
  shownOnce: ['email'],
  input: z.strictObject({
    email: z.string().min(3).max(254).describe('E-mail address of the person.'),
    role: roleField,
  }),
  output: invitationView.extend({
    email: invitationView.shape.email.nullable().describe('The address; null in a replayed answer.'),
  }),
  failures: ['conflict', 'rate_limited', 'provider_unavailable'],
  example: { email: 'grace@example.com', role: 'approver' },
  run: async (context, { email, role }) => {
    const { account, person } = requirePerson(context)
    const { database, messages, settings, now: at } = context
    requireChannel(messages, 'email')
    const destination = await parseDestination(settings, { channel: 'email', destination: email })
    await takeBudgets(context, [messageBudget(destination, 'invitation')], at)
    const { code, ...invitation } = await database.transaction(async (transaction) => {
      const opened = await openInvitation(
        { ...context, database: transaction },
        { accountId: account.id, destination, role, invitedBy: person.id, at },
      )
      await recordChange(
        context,
        { action: 'person.invited', object: { kind: 'invitation', id: opened.id }, after: { role } },
        transaction,
      )
      return opened
    })
    const from = account.displayName
    try {
      await messages.send(invitationMessage(settings, { email: destination.address, role, code, from, at }))
    } catch (error) {
      // Nobody could accept it.
      await cancelInvitation(database, { accountId: account.id, id: invitation.id, now: at })
      throw error
    }
    return viewInvitation(invitation)
  },
})
