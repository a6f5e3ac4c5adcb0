/** The return of a purse's money: once, to the wallet that the purse was opened for, whatever the database says later. */
import { expect, it } from 'vitest'
import { available, external, pursePlace } from '../../../src/books/ledger/accounts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { post } from '../../../src/books/ledger/post.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { insertKey } from '../../../src/people/identity/store.ts'
import { purseKey } from '../../../src/rails/buying/authorization.ts'
import { insertPurchase, openPurse } from '../../../src/rails/buying/store.ts'
import { sweepPurses } from '../../../src/rails/buying/sweep-purse.ts'
import { openWallet } from '../../../src/rails/wallets/open-wallet.ts'
import { spendOf } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import { buildKeyPrincipal, newPerson, noon, servicesOn } from '../../kernel/scene.ts'
import { signedPurchase } from './signed-purchase.ts'

const running = new AbortController().signal

onBothEngines('the purse of a revoked key', (database) => {
  const open = async () => {
    const services = await servicesOn(database())
    const { account } = await newPerson(database())
    const home = await openWallet(services, { accountId: account.id, at: noon })
    const { key } = buildKeyPrincipal(account)
    await insertKey(database(), account.id, { ...key, secretHash: null })
    const { address } = purseKey(services.settings.dataKey, key.id)
    await openPurse(
      { database: database(), dataKey: services.settings.dataKey },
      { id: key.id, accountId: account.id, address, home, chunk: 0n, at: noon },
    )
    await services.chain.mint([{ token: 'USDC', to: address, units: 700n }])
    await post(database(), {
      id: `fund:${key.id}`,
      kind: 'deposit',
      reference: key.id,
      at: noon,
      postings: [
        {
          source: external('base-sepolia'),
          destination: available(account.id, pursePlace(key.id)),
          money: { asset: 'USDC', units: 700n },
        },
      ],
    })
    const readBooked = async (place: string) =>
      (await balances(database(), account.id)).find((row) => row.place === place)?.available ?? 0n
    /** A purchase of the key, signed, whose 100 units are held in its purse. */
    const buy = async () => {
      const spend = spendOf({ accountId: account.id, keyId: key.id }, 100n, {
        operation: 'purchases.buy',
        purse: { id: key.id, chunk: 0n },
      })
      await reserveSpend(database(), spend)
      const { decisionId } = spend
      return insertPurchase(
        database(),
        signedPurchase({ accountId: account.id, keyId: key.id, decisionId, address, units: 100n }),
      )
    }
    const endPurchase = () =>
      database()
        .kysely.updateTable('purchase')
        .set({ state: 'settled', transaction_hash: '0xd', updated_at: noon })
        .where('purse_id', '=', key.id)
        .execute()
    const revoke = () =>
      database()
        .kysely.updateTable('access_key')
        .set({ status: 'revoked' })
        .where('id', '=', key.id)
        .execute()
    return { services, account, key, home, address, readBooked, buy, endPurchase, revoke }
  }

  it('goes back to the wallet once, and not while its key buys', async () => {
    const { services, key, home, address, readBooked, buy, endPurchase, revoke } = await open()
    expect(await buy()).toBe('signed')
    expect(await sweepPurses(services, running)).toBe(0)
    await endPurchase()
    expect(await sweepPurses(services, running)).toBe(0)
    await revoke()
    await Promise.all([sweepPurses(services, running), sweepPurses(services, running)])
    await sweepPurses(services, running)
    expect([await readBooked(pursePlace(key.id)), await readBooked('base-sepolia')]).toEqual([0n, 600n])
    expect(await services.chain.readBalance('USDC', home)).toBe(600n)
    expect(await services.chain.readBalance('USDC', address)).toBe(100n)
  })

  it('goes back from a key that has bought nothing', async () => {
    const { services, key, home, readBooked } = await open()
    await sweepPurses(services, running)
    expect([await readBooked(pursePlace(key.id)), await readBooked('base-sepolia')]).toEqual([0n, 700n])
    expect(await services.chain.readBalance('USDC', home)).toBe(700n)
  })

  it('goes back although others never can', async () => {
    const stuck = await Promise.all(Array.from({ length: 51 }, open))
    const services = await servicesOn(database())
    for (const { key } of stuck)
      await database().kysely.updateTable('purse').set({ mac: 'forged' }).where('id', '=', key.id).execute()
    for (let round = 0; round < 2; round += 1) await sweepPurses(services, running)
    const last = await open()
    const later = { ...last.services, clock: () => new Date(noon.getTime() + 1_000) }
    for (let round = 0; round < 3; round += 1) await sweepPurses(later, running)
    expect(await last.services.chain.readBalance('USDC', last.home)).toBe(700n)
  })

  it('goes nowhere else', async () => {
    const { services, key, address, revoke } = await open()
    await revoke()
    const thief = `0x${'9'.repeat(40)}` as const
    await database().kysely.updateTable('purse').set({ home: thief }).where('id', '=', key.id).execute()
    await sweepPurses(services, running)
    expect(await services.chain.readBalance('USDC', thief)).toBe(0n)
    expect(await services.chain.readBalance('USDC', address)).toBe(700n)
  })
})
