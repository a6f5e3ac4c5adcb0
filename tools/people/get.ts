import { z } from 'zod'
import { requirePerson } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { listPeople } from '../../src/people/identity/members/memberships.ts'
import { personView, viewPeople } from '../../src/people/identity/members/person-view.ts'
import { requireOneOf } from '../../src/people/identity/members/remove-person.ts'

export default defineTool({
  name: 'people.get',
  title: 'Person',
  summary: 'Read one of the people of the account.',
  description: 'Their role is what they may do now.',
  route: 'GET /api/people/{id}',
  who: 'person',
  effect: 'read',
  role: 'accountant',
  input: z.strictObject({ id: z.string().max(64).describe('The person: `acct_…`') }),
  output: personView,
  failures: ['not_found'],
  example: { id: 'acct_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id }) => {
    const { account, person } = requirePerson(context)
    const found = requireOneOf(await listPeople(context.database, account.id), id)
    const [view] = await viewPeople(context, [found], person)
    if (view === undefined) throw new Error(`${id} has no view`)
    return view
  },
})
