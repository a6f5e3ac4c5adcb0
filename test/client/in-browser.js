/** Runs in a page of the gateway; leaves its findings in the title. */
import { Bursar, BursarProblem } from '/assets/client.js'

const agentKey = JSON.parse(new URL(import.meta.url).searchParams.get('key'))
const owner = new Bursar({ url: location.origin })
const entered = await owner.auth.guest()
const { balances } = await owner.wallets.get()
await owner.agents.keys.create({
  name: 'Browser agent',
  publicKey: agentKey.publicKey,
  scopes: ['wallets:transfer', 'wallets:read'],
  policy: {
    perTransaction: { max: '5' },
    dailyBudget: { max: '5' },
    categories: { allow: ['transfer'] },
  },
})
const agent = new Bursar({ url: location.origin, agentKey })
const payment = { destination: '0x00000000000000000000000000000000000A11cE', token: 'USDC' }
const { status } = await agent.wallets.transfer({ ...payment, amount: '2' })
const refused = await agent.wallets.transfer({ ...payment, amount: '4' }).catch((error) => error)
const code = refused instanceof BursarProblem ? refused.code : null
const listed = []
for await (const { amount } of owner.wallets.transfers.list({ limit: 1 })) listed.push(amount)
document.title = JSON.stringify({
  isGuest: entered.account.guest,
  hasToken: 'sessionToken' in entered,
  assets: balances.length,
  status,
  code,
  listed,
})
