import { z } from 'zod'
import type { Context } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { createAccount } from '../../src/people/identity/accounts.ts'
import { GUEST_NAME } from '../../src/people/identity/display-name.ts'
import { sessionAnswer, signIn } from '../../src/people/identity/sessions/session-answer.ts'
import { openVirtualAccount, orderVirtualAccount } from '../../src/rails/banking/open-account.ts'
import { demoCard, issueCard } from '../../src/rails/cards/issue-card.ts'
import { orderCard } from '../../src/rails/cards/order-card.ts'
import { openPortfolio } from '../../src/rails/investing/open-portfolio.ts'
import { bookDeposit, demoFunds, openWallet } from '../../src/rails/wallets/open-wallet.ts'
import { mintOwed, recordOwedMints } from '../../src/rails/wallets/reconcile/owed-mints.ts'

export default defineTool({
  name: 'auth.guest',
  title: 'Guest session',
  summary: 'Start a demo guest session with a funded wallet.',
  description:
    'The wallet holds 1,000 USDC, 500 EURC, 250 USDT and 250 PYUSD on the sandbox chain, the portfolio 500 USD and a few shares; in production both are empty. In the sandbox a guest has a virtual card and a USD virtual account too. A guest is never an administrator. In the sandbox the session lasts 30 days from its last use, and its token 15 minutes like any other; adding a passkey (POST /api/auth/webauthn) turns the guest into a person.',
  route: 'POST /api/auth/guest',
  who: 'public',
  effect: 'write',
  proof: 'none',
  only: 'guests',
  rate: 'guests',
  opensSession: true,
  ownTransactions: true,
  input: z.strictObject({}),
  output: sessionAnswer.extend({
    hint: z.string().describe('How to keep the session: a guest cannot sign in again.'),
  }),
  failures: ['provider_unavailable', 'rate_limited', 'account_locked'],
  example: {},
  run: async (context) => {
    const { answer, furnish } = await context.database.transaction((database) =>
      openGuest({ ...context, database: { ...context.database, ...database } }),
    )
    // Jobs retry failed steps; the guest session works without them.
    await Promise.all(
      furnish.map((furnishing) =>
        furnishing(context).catch((err: unknown) =>
          context.log.warn({ err, accountId: answer.account.id }, 'a guest is not fully set up yet'),
        ),
      ),
    )
    return answer
  },
})

const RENEWAL_HINT =
  'Before expiresAt, GET /api/auth/session with the token returns a new token of the same session; without one the guest is lost. Browsers, and clients that keep cookies, are renewed by a cookie.'

type SetupStep = (context: Context) => Promise<unknown>

/**
 * Creates the account and its orders in one transaction.
 * @returns the provider and chain steps to run after the commit.
 */
async function openGuest(context: Context) {
  const { chain, now: at, settings } = context
  const account = await createAccount(context, { displayName: GUEST_NAME, guest: true, at })
  const safeAddress = await openWallet(context, { accountId: account.id, at })
  const furnish: SetupStep[] = []
  if (settings.mode === 'sandbox') {
    const wanted = { ...demoCard, accountId: account.id, keyId: null, cardholderName: account.displayName }
    const card = await orderCard(context, { wanted, call: null, at })
    const destination = { token: 'USDC', chain: chain.name, address: safeAddress } as const
    const bank = await orderVirtualAccount(context, { holder: account, currency: 'USD', destination, at })
    await bookDeposit(context, { accountId: account.id, funds: demoFunds, reference: account.id, at })
    await openPortfolio(context, { accountId: account.id, at })
    const mints = demoFunds.map(({ asset, units }) => ({ token: asset, to: safeAddress, units }))
    const owed = await recordOwedMints(context, { accountId: account.id, mints, at })
    furnish.push(
      (after) => issueCard(after, card),
      (after) => openVirtualAccount(after, bank),
      (after) => mintOwed(after, owed),
    )
  }
  return {
    answer: { ...(await signIn(context, { account, method: 'guest', at })), hint: RENEWAL_HINT },
    furnish,
  }
}
