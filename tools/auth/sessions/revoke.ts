import { z } from 'zod'
import { Failure } from '../../../src/failures/failure.ts'
import { revokeSessions } from '../../../src/identity/store.ts'
import { personOf } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'

/** Path value for all sessions except the caller's own. */
const OTHERS = 'others'

export default defineTool({
  name: 'auth.sessions.revoke',
  title: 'End a session',
  summary:
    'End one of the account’s sessions, or all others: their tokens are rejected from the next request on.',
  route: 'DELETE /api/auth/sessions/{id}',
  who: 'person',
  scopes: [],
  effect: 'write',
  mcp: false,
  input: z.strictObject({
    id: z.string().max(64).describe('`sess_…`; `others`: every session except the caller’s.'),
  }),
  output: z.strictObject({ revoked: z.boolean().describe('Always true.') }),
  failures: ['not_found'],
  example: { id: 'sess_01h455vb4pex5vsknk084sn02q' },
  run: async ({ database, principal, now: at }, { id: sessionId }) => {
    const { account, session } = personOf({ principal })
    const accountId = account.id
    if (sessionId === OTHERS) {
      await revokeSessions(database, { accountId, exceptId: session.id, at })
      return { revoked: true }
    }
    if ((await revokeSessions(database, { accountId, sessionId, at })) === 0)
      throw new Failure('not_found', 'You have no such session.', {
        hint: 'GET /api/auth/sessions lists the active sessions.',
      })
    return { revoked: true }
  },
})
