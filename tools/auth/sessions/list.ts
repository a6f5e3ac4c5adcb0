import { z } from 'zod'
import { cutPage, nextCursor, pageMembers, toPage } from '../../../src/core/base/page.ts'
import { untrustedTextOrNull } from '../../../src/core/base/untrusted-text.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { listSessions } from '../../../src/people/identity/store.ts'

export default defineTool({
  name: 'auth.sessions.list',
  title: 'Sessions',
  summary: 'List the account’s active sessions, newest first.',
  description: '`current` marks the one that asks. DELETE /api/auth/sessions/{id} ends another.',
  route: 'GET /api/auth/sessions',
  who: 'person',
  // Every person looks after their own access.
  role: 'accountant',
  effect: 'read',
  input: z.strictObject(pageMembers),
  output: z.strictObject({
    sessions: z
      .array(
        z.strictObject({
          id: z.string().describe('`sess_…`'),
          method: z
            .enum(['passkey', 'email', 'sms', 'identity_provider', 'guest', 'recovery', 'device'])
            .describe('Authentication method; `device`: a signed-in person allowed it for a program.'),
          name: untrustedTextOrNull(
            'Name that the program of a `device` session gave itself; otherwise null.',
          ),
          current: z.boolean().describe('True if this request uses the session.'),
          createdAt: z.string().describe('ISO 8601 UTC.'),
          expiresAt: z.string().describe('When the session ends, regardless of renewals, ISO 8601 UTC.'),
        }),
      )
      .describe('Active sessions, newest first.'),
    nextCursor,
  }),
  failures: [],
  example: {},
  run: async ({ database, principal, now }, input) => {
    const { person, session } = requirePerson({ principal })
    const page = toPage(input)
    const { rows, nextCursor } = cutPage(
      await listSessions(database, { accountId: person.id, page, now }),
      page,
    )
    return {
      sessions: rows.map(({ id, method, name, createdAt, expiresAt }) => ({
        id,
        method,
        name,
        current: id === session.id,
        createdAt: createdAt.toISOString(),
        expiresAt: expiresAt.toISOString(),
      })),
      nextCursor,
    }
  },
})
