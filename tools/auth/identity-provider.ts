import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import {
  accountOfIdentity,
  buildRedirectUri,
  identifyReturned,
  startFederatedSignIn,
} from '../../src/people/identity/oauth/federation.ts'
import { sessionAnswer, signIn } from '../../src/people/identity/sessions/session-answer.ts'
import { openWallet } from '../../src/rails/wallets/open-wallet.ts'

const input = z
  .strictObject({
    provider: z.string().max(64).describe('Name of the identity provider; part of the path.'),
    code: z.string().min(1).max(4096).optional().describe('The `code` returned by the provider.'),
    state: z.string().min(1).max(256).optional().describe('The `state` returned with the code.'),
    iss: z
      .string()
      .min(1)
      .max(2048)
      .optional()
      .describe('The `iss` returned with the code, if any (RFC 9207).'),
  })
  .superRefine(({ code, state, iss }, context) => {
    const isReturn = code !== undefined || state !== undefined || iss !== undefined
    for (const [name, value] of isReturn ? Object.entries({ code, state }) : [])
      if (value === undefined)
        context.addIssue({
          code: 'custom',
          path: [name],
          message: '`code` and `state` are required together',
        })
  })

const output = z.strictObject({
  authorizationUrl: z
    .string()
    .optional()
    .describe(
      'First call: URL to open for sign-in. The provider redirects back to the sign-in page of this gateway.',
    ),
  state: z
    .string()
    .optional()
    .describe('First call: the provider returns the same value; reject a response with any other.'),
  ...sessionAnswer.partial().shape,
})

export default defineTool({
  name: 'auth.identity_provider',
  title: 'Sign in with an identity provider',
  summary:
    'Sign in with an identity provider: first get the authorization URL, then exchange the returned code for a session.',
  description:
    'Call it twice per sign-in. `{}` returns `authorizationUrl` and `state`: store the state in this browser only, and open the URL. The provider redirects back with `code` and `state`: compare the state, and post both within 10 minutes for a session. Each state and code works once.',
  route: 'POST /api/auth/{provider}',
  who: 'public',
  effect: 'write',
  proof: 'none',
  stops: true,
  ownTransactions: true,
  opensSession: true,
  pathValues: { provider: ({ identityProviders }) => [...identityProviders.keys()] },
  input,
  output,
  failures: ['unauthenticated', 'account_locked', 'not_found', 'provider_unavailable'],
  example: { provider: 'google' },
  run: async (context, { provider: name, code, state, iss = null }) => {
    const { database, identityProviders, settings, now: at } = context
    const provider = identityProviders.get(name)
    if (provider === undefined)
      throw new Failure('not_found', 'There is no identity provider with that name.')
    const named = { name, provider, redirectUri: buildRedirectUri(settings, name) }
    if (code === undefined || state === undefined) return startFederatedSignIn(context, named, at)
    const identity = await identifyReturned(context, named, { code, state, iss, at })
    return database.transaction(async (connection) => {
      const parts = { ...context, database: connection }
      const account = await accountOfIdentity(parts, identity, {
        at,
        furnish: async ({ id: accountId }) => void (await openWallet(parts, { accountId, at })),
      })
      return signIn(parts, { account, method: 'identity_provider', at })
    })
  },
})
