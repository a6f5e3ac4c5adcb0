import { z } from 'zod'
import { requirePerson } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { continueSession, unchangedSessionAnswer } from '../../src/people/identity/sessions/session-answer.ts'

export default defineTool({
  name: 'auth.session',
  title: 'Current session',
  summary: 'Read the session and its account, with a fresh token for clients that store it themselves.',
  description: '401 `unauthenticated` without a session.',
  route: 'GET /api/auth/session',
  who: 'person',
  // Every person looks after their own access.
  role: 'accountant',
  effect: 'read',
  input: z.strictObject({}),
  output: unchangedSessionAnswer,
  failures: [],
  run: async (context) => {
    const { account, person, session } = requirePerson(context)
    return continueSession(context.settings, { account, person, session, at: context.now })
  },
})
