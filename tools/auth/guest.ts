import { z } from 'zod'
import { openVirtualAccount } from '../../src/banking/open-account.ts'
import { issueCard, newCard } from '../../src/cards/issue-card.ts'
import { createAccount } from '../../src/identity/accounts.ts'
import { sessionAnswer, signIn } from '../../src/identity/session-answer.ts'
import { openPortfolio } from '../../src/investing/open-portfolio.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { bookDeposit, demoFunds, openWallet } from '../../src/wallets/open-wallet.ts'

export default defineTool({
  name: 'auth.guest',
  title: 'Guest session',
  summary: 'Start a demo guest session with a funded wallet.',
  description:
    'The wallet holds 1,000 USDC, 500 EURC, 250 USDT and 250 PYUSD on the sandbox chain, the portfolio 500 USD and a few shares; in production both are empty. In the sandbox a guest has a virtual card and a USD virtual account too. A guest is never an administrator.',
  route: 'POST /api/auth/guest',
  who: 'public',
  scopes: [],
  effect: 'write',
  mcp: false,
  only: 'guests',
  opensSession: true,
  input: z.strictObject({}),
  output: sessionAnswer,
  failures: ['provider_unavailable'],
  example: {},
  run: async (context) => {
    const { chain, now: at, settings } = context
    const account = await createAccount(context, { displayName: 'Guest', guest: true, at })
    const safeAddress = await openWallet(context, { accountId: account.id, at })
    if (settings.mode === 'sandbox') {
      const card = { ...newCard, accountId: account.id, keyId: null, cardholderName: account.displayName }
      await issueCard(context, card, at)
      const destination = { token: 'USDC', chain: chain.name, address: safeAddress } as const
      await openVirtualAccount(context, { holder: account, currency: 'USD', destination, at })
      await bookDeposit(context, { accountId: account.id, funds: demoFunds, reference: account.id, at })
      await openPortfolio(context, { accountId: account.id, at })
      context.afterCommit(() =>
        chain.mint(demoFunds.map(({ asset, units }) => ({ token: asset, to: safeAddress, units }))),
      )
    }
    return signIn(context, { account, method: 'guest', at })
  },
})
