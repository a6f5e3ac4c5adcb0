import { expect, it } from 'vitest'
import { collectOwedDeposits } from '../../src/jobs/collect-owed.ts'
import { external, revenue } from '../../src/ledger/accounts.ts'
import { balanceOfSystem } from '../../src/ledger/balances.ts'
import { trialBalance } from '../../src/ledger/trial-balance.ts'
import { silentLog } from '../../src/log.ts'
import { releaseSpend } from '../../src/spending/release.ts'
import { reserveSpend } from '../../src/spending/reserve.ts'
import { settleSpend } from '../../src/spending/settle.ts'
import { fund, newOwner, noon, owned } from '../cards/scene.ts'
import { onBothEngines } from '../engines.ts'
import { spendOf } from '../spending/scene.ts'
import { open, tell } from './scene.ts'

onBothEngines('a deposit that the bank takes back', (database) => {
  it('is taken from what is there, with little on hold', async () => {
    const owner = await newOwner(database(), {})
    const account = await open(database(), owner)
    await tell(database(), account, 'payment_processed')
    const spend = spendOf({ accountId: owner, keyId: null }, 1n, {
      money: { asset: 'USD', units: 1n },
      place: 'bank',
    })
    expect(await reserveSpend(database(), spend)).toMatchObject({ verdict: 'allow' })
    await tell(database(), account, 'returned')
    expect(await owned(database(), owner)).toEqual(['USD 0 + 0.01'])
  })

  it('is collected from what was on hold or comes later, as soon as it is free, and no more of it', async () => {
    const owner = await newOwner(database(), {})
    const account = await open(database(), owner)
    const lost = () => balanceOfSystem(database(), revenue('deposit-loss'), 'USD')
    const before = await lost()
    const collect = () =>
      collectOwedDeposits(
        { database: database(), clock: () => noon, log: silentLog },
        new AbortController().signal,
      )
    const spends = [700n, 300n].map((units) =>
      spendOf({ accountId: owner, keyId: null }, units, { money: { asset: 'USD', units }, place: 'bank' }),
    )
    await tell(database(), account, 'payment_processed')
    for (const spend of spends)
      expect(await reserveSpend(database(), spend)).toMatchObject({ verdict: 'allow' })
    await tell(database(), account, 'returned')
    await tell(database(), account, 'refunded')
    expect(await owned(database(), owner)).toEqual(['USD 0 + 10'])
    expect((await lost()) - before).toBe(-1000n)
    await collect()
    await settleSpend(database(), {
      decisionId: spends[0]?.decisionId ?? '',
      destination: external('cards'),
      at: noon,
    })
    await releaseSpend(database(), { decisionId: spends[1]?.decisionId ?? '', at: noon })
    await Promise.all([collect(), collect(), collect()])
    expect(await owned(database(), owner)).toEqual([])
    expect((await lost()) - before).toBe(-700n)
    await fund(database(), owner, { USD: '9', USDC: '5' })
    for (let times = 0; times < 2; times += 1) await collect()
    expect(await owned(database(), owner)).toEqual(['USD 2 + 0', 'USDC 5 + 0'])
    expect((await lost()) - before).toBe(0n)
    expect((await trialBalance(database())).balanced).toBe(true)
  })
})
