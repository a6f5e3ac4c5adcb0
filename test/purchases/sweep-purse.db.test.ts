/** The return of a purse's money: once, to the wallet that the purse was opened for, whatever the database says later. */
import { expect, it } from 'vitest'
import { insertKey } from '../../src/identity/store.ts'
import { available, external, pursePlace } from '../../src/ledger/accounts.ts'
import { balances } from '../../src/ledger/balances.ts'
import { post } from '../../src/ledger/post.ts'
import { purseKey } from '../../src/purchases/authorization.ts'
import { openPurse } from '../../src/purchases/store.ts'
import { sweepPurses } from '../../src/purchases/sweep-purse.ts'
import { openWallet } from '../../src/wallets/open-wallet.ts'
import { onBothEngines } from '../engines.ts'
import { keyOf, newPerson, noon, servicesOn } from '../kernel/scene.ts'

const running = new AbortController().signal

onBothEngines('the purse of a revoked key', (database) => {
  const open = async () => {
    const services = await servicesOn(database())
    const { account } = await newPerson(database())
    const home = await openWallet(services, { accountId: account.id, at: noon })
    const { key } = keyOf(account)
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
    const booked = async (place: string) =>
      (await balances(database(), account.id)).find((row) => row.place === place)?.available ?? 0n
    const revoke = () =>
      database()
        .kysely.updateTable('access_key')
        .set({ status: 'revoked' })
        .where('id', '=', key.id)
        .execute()
    return { services, account, key, home, address, booked, revoke }
  }

  it('goes back to the wallet once', async () => {
    const { services, key, home, address, booked, revoke } = await open()
    expect(await sweepPurses(services, running)).toBe(0)
    await revoke()
    await Promise.all([sweepPurses(services, running), sweepPurses(services, running)])
    await sweepPurses(services, running)
    expect([await booked(pursePlace(key.id)), await booked('base-sepolia')]).toEqual([0n, 700n])
    expect(await services.chain.balanceOf('USDC', home)).toBe(700n)
    expect(await services.chain.balanceOf('USDC', address)).toBe(0n)
  })

  it('goes nowhere else', async () => {
    const { services, key, address, revoke } = await open()
    await revoke()
    const thief = `0x${'9'.repeat(40)}` as const
    await database().kysely.updateTable('purse').set({ home: thief }).where('id', '=', key.id).execute()
    await sweepPurses(services, running)
    expect(await services.chain.balanceOf('USDC', thief)).toBe(0n)
    expect(await services.chain.balanceOf('USDC', address)).toBe(700n)
  })
})
