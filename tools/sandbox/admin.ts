import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { requirePerson } from '../../src/kernel/context.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { setSandboxRole } from '../../src/people/identity/accounts.ts'

export default defineTool({
  name: 'sandbox.admin',
  title: 'Become an administrator of the sandbox',
  summary: 'Make the caller’s account an administrator, to try the admin routes. Not available to guests.',
  description: 'It exists in the sandbox only.',
  route: 'POST /sandbox/admin',
  who: 'person',
  effect: 'write',
  proof: 'none',
  only: 'sandbox',
  input: z.strictObject({}),
  output: z.strictObject({ role: z.literal('admin').describe('New role of the account.') }),
  failures: ['conflict'],
  example: {},
  run: async (context) => {
    const { account, person } = requirePerson(context)
    if (account.guest)
      throw new Failure('conflict', 'A guest cannot become an administrator.', {
        hint: 'Sign in with a passkey, a one-time code or an identity provider.',
      })
    await setSandboxRole(context.database, { accountId: person.id, role: 'admin' })
    await recordChange(context, {
      action: 'account.role_changed',
      object: { kind: 'account', id: person.id },
      before: { role: account.role },
      after: { role: 'admin' },
    })
    return { role: 'admin' as const }
  },
})
