import { z } from 'zod'
import { defineTool } from '../../src/kernel/tool.ts'
import { revokeSessions } from '../../src/people/identity/store.ts'

export default defineTool({
  name: 'auth.logout',
  title: 'Sign out',
  summary: 'End the session that the request was made with; its token never works again.',
  description:
    'It also clears the cookie. Other sessions of the account stay: GET /api/auth/sessions lists them.',
  route: 'POST /api/auth/logout',
  who: 'public',
  effect: 'write',
  proof: 'none',
  stops: true,
  closesSession: true,
  input: z.strictObject({}),
  output: z.strictObject({ revoked: z.boolean().describe('False if there was no session to end.') }),
  failures: [],
  example: {},
  run: async ({ database, principal, refusal, now: at }) => {
    // Without a session there is nothing to end; cross-site requests are still rejected.
    if (refusal?.code === 'cross_site_request') throw refusal
    if (principal.kind !== 'session') return { revoked: false }
    const sessionId = principal.session.id
    return {
      revoked: (await revokeSessions(database, { accountId: principal.person.id, sessionId, at })) > 0,
    }
  },
})
