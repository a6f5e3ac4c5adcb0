import { expect, it } from 'vitest'
import { run } from '../../../src/kernel/run.ts'
import { bookDeposit, openWallet } from '../../../src/rails/wallets/open-wallet.ts'
import get from '../../../tools/wallets/get.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, newPerson, noon, servicesOn } from '../../kernel/scene.ts'

onBothEngines('reading the wallet', (database) => {
  it('shows money on a chain that the deployment has left, or that does not answer', async () => {
    const services = await servicesOn(database())
    const person = await newPerson(database())
    const accountId = 'account' in person ? person.account.id : ''
    await openWallet(services, { accountId, at: noon })
    const chain = { ...services.chain, name: 'arbitrum-sepolia' as const }
    await bookDeposit(
      { ...services, chain },
      { accountId, funds: [{ asset: 'USDC', units: 7_000_000n }], reference: accountId, at: noon },
    )
    const { body } = await run(get, buildCall(services, person, {}), {})
    expect(body.balances).toContainEqual(
      expect.objectContaining({ token: 'USDC', chain: 'arbitrum-sepolia', amount: '7', held: '0' }),
    )
    expect(body.balances).toContainEqual(
      expect.objectContaining({ token: 'USDC', chain: services.chain.name, amount: '0' }),
    )
  })
})
