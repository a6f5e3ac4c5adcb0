import { expect, it } from 'vitest'
import { sumOpenDebts } from '../../../src/books/debts/debts.ts'
import { external, receivable } from '../../../src/books/ledger/accounts.ts'
import { readSystemBalance } from '../../../src/books/ledger/balances.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { createSnapshotRates } from '../../../src/providers/rates/sandbox.ts'
import { collectDebts } from '../../../src/server/jobs/collect-debts.ts'
import { buildSpend } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import { authenticateDecision, fund, listOwned, newOwner, noon } from '../cards/scene.ts'
import { applyDeposit, open, wallet } from './scene.ts'

onBothEngines('a deposit that the bank reverses', (database) => {
  const collect = () =>
    collectDebts(
      {
        database: database(),
        chains: { all: [{ name: 'base-sepolia' }] },
        rates: createSnapshotRates(),
        newId,
        vouch: authenticateDecision,
        clock: () => noon,
        log: silentLog,
        settings: { cardSpreadBps: 0 },
      },
      new AbortController().signal,
    )

  it('is debited from the available balance, despite small holds', async () => {
    const owner = await newOwner(database(), {})
    const account = await open(database(), owner)
    await applyDeposit(database(), account, 'payment_processed')
    const spend = buildSpend({ accountId: owner, keyId: null }, 1n, {
      money: { asset: 'USD', units: 1n },
      place: 'bank',
    })
    expect(await reserveSpend(database(), spend)).toMatchObject({ verdict: 'allow' })
    await applyDeposit(database(), account, 'returned')
    expect(await listOwned(database(), owner)).toEqual(['USD 0 + 0.01'])
  })

  it('becomes a debt after conversion to a token or another currency, and is recovered from every balance', async () => {
    const owner = await newOwner(database(), {})
    const pounds = await open(database(), owner, { currency: 'GBP', destination: wallet })
    await applyDeposit(database(), pounds, 'payment_processed')
    const euros = await open(database(), owner, { currency: 'EUR' })
    await applyDeposit(database(), euros, 'payment_processed')
    expect(await listOwned(database(), owner)).toEqual(['EUR 12.5 + 0', 'USDC 15.809978 + 0'])
    // 12.50 pounds again: all of the euros, and the rest in USDC, which are on their way to the treasury.
    await applyDeposit(database(), pounds, 'returned')
    expect(await sumOpenDebts(database(), owner)).toEqual([])
    expect(await listOwned(database(), owner)).toEqual([expect.stringMatching(/^USDC 13\.\d+ \+ 2\.\d+$/)])
    // 12.50 euros are the whole rest, except for a cent of rounding.
    await applyDeposit(database(), euros, 'returned')
    expect(await sumOpenDebts(database(), owner)).toEqual([{ asset: 'EUR', units: 1n }])
    await fund(database(), owner, { USD: '1' })
    await collect()
    expect(await sumOpenDebts(database(), owner)).toEqual([])
    expect(await listOwned(database(), owner)).toContain('USD 0.98 + 0')
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('is owed in the reversed amount, whatever the rates have done since', async () => {
    const { perEuro, ...table } = await createSnapshotRates().latest(noon)
    for (const pound of ['0.42319', '1.69276']) {
      const owner = await newOwner(database(), {})
      const account = await open(database(), owner, { currency: 'GBP', destination: wallet })
      await applyDeposit(database(), account, 'payment_processed')
      const later = { ...table, perEuro: new Map([...perEuro, ['GBP', pound]]) }
      await applyDeposit(database(), account, 'returned', {}, true, { latest: async () => later })
      const debt = await database()
        .kysely.selectFrom('debt')
        .select(['asset', 'units'])
        .where('account_id', '=', owner)
        .executeTakeFirst()
      expect([pound, debt]).toEqual([pound, { asset: 'GBP', units: 1250n }])
    }
  })

  it('is recovered from released holds and later income, as soon as available, and at most once', async () => {
    const owner = await newOwner(database(), {})
    const account = await open(database(), owner)
    const lost = () => readSystemBalance(database(), receivable('debts'), 'USD')
    const before = await lost()
    const spends = [700n, 300n].map((units) =>
      buildSpend({ accountId: owner, keyId: null }, units, { money: { asset: 'USD', units }, place: 'bank' }),
    )
    await applyDeposit(database(), account, 'payment_processed')
    for (const spend of spends)
      expect(await reserveSpend(database(), spend)).toMatchObject({ verdict: 'allow' })
    await applyDeposit(database(), account, 'returned')
    await applyDeposit(database(), account, 'refunded')
    expect(await listOwned(database(), owner)).toEqual(['USD 0 + 10'])
    expect((await lost()) - before).toBe(-1000n)
    await collect()
    await settleSpend(database(), {
      decisionId: spends[0]?.decisionId ?? '',
      destination: external('cards'),
      at: noon,
    })
    await releaseSpend(database(), { decisionId: spends[1]?.decisionId ?? '', at: noon })
    await Promise.all([collect(), collect(), collect()])
    expect(await listOwned(database(), owner)).toEqual([])
    expect((await lost()) - before).toBe(-700n)
    await fund(database(), owner, { USD: '9', USDC: '5' })
    for (let times = 0; times < 2; times += 1) await collect()
    expect(await listOwned(database(), owner)).toEqual(['USD 2 + 0', 'USDC 5 + 0'])
    expect((await lost()) - before).toBe(0n)
    expect((await trialBalance(database())).balanced).toBe(true)
  })
})
