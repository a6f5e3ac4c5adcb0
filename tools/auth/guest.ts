import { z } from 'zod'
import { createAccount } from '../../src/identity/accounts.ts'
import { openSession } from '../../src/identity/sessions.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { bookDeposit, demoFunds, openWallet } from '../../src/wallets/open-wallet.ts'

export default defineTool({
  name: 'auth.guest',
  title: 'Guest session',
  summary: 'Start a demo guest session with a funded wallet.',
  description:
    'The wallet holds 1,000 USDC, 500 EURC, 250 USDT and 250 PYUSD on the sandbox chain. A guest is never an administrator.',
  route: 'POST /api/auth/guest',
  who: 'public',
  scopes: [],
  effect: 'write',
  mcp: false,
  sandboxOnly: true,
  opensSession: true,
  input: z.strictObject({}),
  output: z.strictObject({
    account: z
      .strictObject({
        id: z.string().describe('`acct_…`'),
        role: z.enum(['user', 'admin']).describe('Always `user` for a guest.'),
        guest: z.boolean().describe('Whether this is a demo account.'),
        displayName: z.string().describe('What to call the person.'),
        kycLevel: z.string().describe('Level of identity verification.'),
        mfaEnrolled: z.boolean().describe('Whether a second factor is enrolled.'),
      })
      .describe('The account that was made.'),
    sessionToken: z
      .string()
      .describe('Send it as "Authorization: Bearer …"; browsers get the same as a cookie.'),
    expiresAt: z.string().describe('When the token ends, ISO 8601 UTC.'),
  }),
  failures: ['provider_unavailable'],
  example: {},
  run: async (context) => {
    const { now: at } = context
    const account = await createAccount(context, { displayName: 'Guest', guest: true, at })
    const safeAddress = await openWallet(context, { accountId: account.id, at })
    await bookDeposit(context, { accountId: account.id, funds: demoFunds, reference: account.id, at })
    const session = await openSession(context, { accountId: account.id, at })
    context.afterCommit(() =>
      context.chain.mint(demoFunds.map(({ asset, units }) => ({ token: asset, to: safeAddress, units }))),
    )
    const { id, role, guest, displayName, kycLevel } = account
    return {
      account: { id, role, guest, displayName, kycLevel, mfaEnrolled: false },
      sessionToken: session.sessionToken,
      expiresAt: session.expiresAt.toISOString(),
    }
  },
})
