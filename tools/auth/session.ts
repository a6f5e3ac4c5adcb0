import { z } from 'zod'
import { accountView, viewOf } from '../../src/identity/session-answer.ts'
import { renewToken } from '../../src/identity/sessions.ts'
import { personOf } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'

export default defineTool({
  name: 'auth.session',
  title: 'Who is signed in',
  summary: 'Read the session: whose it is, and a fresh token for clients that keep it themselves.',
  route: 'GET /api/auth/session',
  who: 'person',
  scopes: [],
  effect: 'read',
  mcp: false,
  input: z.strictObject({}),
  output: z.strictObject({
    account: accountView.describe('Who is signed in.'),
    sessionToken: z
      .string()
      .nullable()
      .describe('A fresh token of the same session; null for a browser, whose cookie scripts cannot read.'),
    expiresAt: z.string().describe('When the token ends, ISO 8601 UTC.'),
  }),
  failures: [],
  run: async (context) => {
    const { account, session } = personOf(context)
    if (session.tokenHolder === 'browser')
      return { account: viewOf(account), sessionToken: null, expiresAt: session.tokenExpiresAt.toISOString() }
    const { sessionToken, expiresAt } = await renewToken(context.settings, {
      account,
      session,
      at: context.now,
    })
    return { account: viewOf(account), sessionToken, expiresAt: expiresAt.toISOString() }
  },
})
