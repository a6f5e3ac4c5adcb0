import { z } from 'zod'
import { requirePerson } from '../../../src/kernel/context.ts'
import { recordChange } from '../../../src/kernel/record-change.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { takeInvitation } from '../../../src/people/identity/members/invitations.ts'
import { keepFounder, listPeople, putMembership } from '../../../src/people/identity/members/memberships.ts'
import { personView, viewPeople } from '../../../src/people/identity/members/person-view.ts'
import { requireOneOf } from '../../../src/people/identity/members/remove-person.ts'
import { sendSecurityNotice } from '../../../src/people/identity/security-notices.ts'
import { findAccount } from '../../../src/people/identity/store.ts'

export default defineTool({
  name: 'people.invitations.accept',
  title: 'Accept an invitation',
  summary: 'Become one of the people of an account: all your sessions act for it from now on.',
  description:
    'You must be signed in with the address that the invitation was mailed to; otherwise, and for a wrong, used or expired code, it is `not_found`. One person acts for one account: `conflict` if you share another one, if money, keys or cards are left in your own or money is on its way to or from it, and while the inviting account or person is locked.',
  route: 'POST /api/people/invitations/accept',
  who: 'person',
  effect: 'write',
  // Whatever the person is in the account that they leave.
  role: 'accountant',
  proof: 'none',
  input: z.strictObject({ code: z.string().trim().min(1).max(64).describe('Code of the mail.') }),
  output: z.strictObject({
    accountId: z.string().describe('Account that you act for now: `acct_…`'),
    person: personView.describe('You, as one of its people.'),
  }),
  failures: ['not_found', 'conflict', 'account_locked'],
  example: { code: 'hn3Jt0m2Zc8Qf1xYb7Vw5kLr9Pd' },
  run: async (context, { code }) => {
    const caller = requirePerson(context)
    const { database, now: at } = context
    const personId = caller.person.id
    const { id, accountId, role } = await takeInvitation(context, {
      code,
      personId,
      accountId: caller.account.id,
      now: at,
    })
    const account = await findAccount(database, accountId)
    if (account === undefined) throw new Error(`an invitation leads to no account: ${accountId}`)
    await keepFounder(database, account)
    await putMembership(database, { personId, accountId, role, at })
    const people = await listPeople(database, accountId)
    const joined = requireOneOf(people, personId)
    for (const owner of people.filter((one) => one.role === 'owner' && one !== joined))
      await sendSecurityNotice(context, { accountId: owner.personId, notice: 'person_joined', at })
    // From here on the session acts for the shared account.
    const { mfaEnrolled } = caller.account
    const principal = { ...caller, account: { ...account, mfaEnrolled }, person: { ...caller.person, role } }
    await recordChange(
      { ...context, principal },
      { action: 'person.joined', object: { kind: 'person', id: personId }, after: { role, invitation: id } },
    )
    const [view] = await viewPeople(context, [joined], { id: personId, role })
    if (view === undefined) throw new Error(`${personId} has no view`)
    return { accountId, person: view }
  },
})
