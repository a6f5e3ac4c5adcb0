import { z } from 'zod'
import { readQuorums, requireEnoughPeople } from '../../src/books/approvals/quorum.ts'
import { requirePerson } from '../../src/kernel/context.ts'
import { requireRole } from '../../src/kernel/gates/scope.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { listPeople, lockPeople } from '../../src/people/identity/members/memberships.ts'
import { endMembership, requireOneOf, requireOwner } from '../../src/people/identity/members/remove-person.ts'
import { sendSecurityNotice } from '../../src/people/identity/security-notices.ts'
import { openWallet } from '../../src/rails/wallets/open-wallet.ts'

export default defineTool({
  name: 'people.remove',
  title: 'Remove a person',
  summary: 'Remove one of the people of the account, or leave it; their sessions end at once, everywhere.',
  description:
    'Everybody may leave; owners remove others. The programs that the person allowed lose access, keys that they made are paused, and what they agreed to of open approvals no longer counts. They keep their sign-in, for an account of their own. `conflict`: the last owner cannot leave, nor whose passkey guards the wallet, nor who is needed for the approvals that the account requires.',
  route: 'DELETE /api/people/{id}',
  who: 'person',
  effect: 'write',
  // Anybody may leave; `run` asks for an owner to remove somebody else.
  role: 'accountant',
  proof: 'step-up',
  stops: true,
  input: z.strictObject({ id: z.string().max(64).describe('The person: `acct_…`; your own to leave.') }),
  output: z.strictObject({
    removed: z.literal(true).describe('Always true.'),
    grantsRevoked: z.int().describe('Programs that the person allowed, and that lost access.'),
    keysPaused: z.int().describe('Other keys that the person made: resume those that are yours.'),
  }),
  failures: ['not_found', 'conflict'],
  example: { id: 'acct_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const caller = requirePerson(context)
    const { database, now: at } = context
    const accountId = caller.account.id
    const isLeaving = id === caller.person.id
    if (!isLeaving) requireRole(caller, 'owner')
    await lockPeople(database, [accountId])
    const people = await listPeople(database, accountId)
    const person = requireOneOf(people, id)
    requireOwner(people.filter((one) => one !== person))
    const openOwn = (ownId: string) => openWallet(context, { accountId: ownId, at })
    const { revoked, paused } = await endMembership({ ...context, openOwn }, { person, at })
    await requireEnoughPeople(database, accountId, await readQuorums(database, accountId))
    await sendSecurityNotice(context, { accountId: id, notice: 'person_removed', at })
    await recordChange(context, {
      action: isLeaving ? 'person.left' : 'person.removed',
      object: { kind: 'person', id },
      before: { role: person.role },
      after: { grantsRevoked: revoked, keysPaused: paused },
    })
    return { removed: true as const, grantsRevoked: revoked, keysPaused: paused }
  },
})
