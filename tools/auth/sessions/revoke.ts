import { z } from 'zod'
import { Failure } from '../../../src/core/failures/failure.ts'
import { requirePerson } from '../../../src/kernel/context.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { sendSecurityNotice } from '../../../src/people/identity/security-notices.ts'
import { revokeSessions } from '../../../src/people/identity/store.ts'

/** Path value for all sessions except the caller's own. */
const OTHERS = 'others'

export default defineTool({
  name: 'auth.sessions.revoke',
  title: 'End a session',
  summary:
    'End one of the account’s sessions, or all others: their tokens are rejected from the next request on.',
  description:
    'Push messages to the browsers of these sessions end with them, and the owner is told by mail.',
  route: 'DELETE /api/auth/sessions/{id}',
  who: 'person',
  // Every person looks after their own access.
  role: 'accountant',
  effect: 'write',
  proof: 'none',
  stops: true,
  input: z.strictObject({
    id: z.string().max(64).describe('`sess_…`; `others`: every session except the caller’s.'),
  }),
  output: z.strictObject({ revoked: z.boolean().describe('Always true.') }),
  failures: ['not_found'],
  example: { id: 'sess_01h455vb4pex5vsknk084sn02q' },
  run: async (context, { id: sessionId }) => {
    const { database, now: at } = context
    const { person, session } = requirePerson(context)
    const accountId = person.id
    if (sessionId === OTHERS) {
      const ended = await revokeSessions(database, { accountId, exceptId: session.id, at })
      if (ended > 0) await sendSecurityNotice(context, { accountId, notice: 'sessions_ended', at })
      return { revoked: true }
    }
    if ((await revokeSessions(database, { accountId, sessionId, at })) === 0)
      throw new Failure('not_found', 'You have no such session.', {
        hint: 'GET /api/auth/sessions lists the active sessions.',
      })
    if (sessionId !== session.id)
      await sendSecurityNotice(context, { accountId, notice: 'session_ended', at })
    return { revoked: true }
  },
})
