/** The return of a purse's money: once, to the wallet that the purse was opened for, whatever the database says later. */
import { expect, it } from 'vitest'
import { available, external, type LedgerAccount, pursePlace } from '../../../src/books/ledger/accounts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { post } from '../../../src/books/ledger/post.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { createSimulatedChain } from '../../../src/chain/simulated/simulated.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { insertKey } from '../../../src/people/identity/store.ts'
import type { Chain } from '../../../src/providers/chain/port.ts'
import { purseKey } from '../../../src/rails/buying/authorization.ts'
import { insertPurchase, openPurse } from '../../../src/rails/buying/store.ts'
import { sweepPurses } from '../../../src/rails/buying/sweep-purse.ts'
import { openWallet } from '../../../src/rails/wallets/open-wallet.ts'
import { verifySettled } from '../../../src/server/jobs/verify-settled.ts'
import { buildSpend } from '../../books/spending/scene.ts'
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
    const fund = (units: bigint) =>
      post(database(), {
        id: `fund:${key.id}:${units}`,
        kind: 'deposit',
        reference: key.id,
        at: noon,
        postings: [
          {
            source: external('base-sepolia'),
            destination: available(account.id, pursePlace(key.id)),
            money: { asset: 'USDC', units },
          },
        ],
      })
    await fund(700n)
    const readBooked = async (place: string) =>
      (await balances(database(), account.id)).find((row) => row.place === place)?.available ?? 0n
    /** A purchase of the key, signed, whose 100 units are held in its purse. */
    const buy = async () => {
      const spend = buildSpend({ accountId: account.id, keyId: key.id }, 100n, {
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
    return { services, account, key, home, address, fund, readBooked, buy, endPurchase, revoke }
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

  it('goes back without what a replaced block took, which stays available to be reversed', async () => {
    const { services, account, key, home, fund, readBooked } = await open()
    await fund(1_000n)
    for (let round = 0; round < 2; round += 1) await sweepPurses(services, running)
    expect(await services.chain.readBalance('USDC', home)).toBe(700n)
    expect([await readBooked(pursePlace(key.id)), await readBooked('base-sepolia')]).toEqual([1_000n, 700n])
    const held = (await balances(database(), account.id)).filter((row) => row.held > 0n)
    expect(held).toEqual([])
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

onBothEngines('the sweep of a purse on a chain whose blocks were replaced', (database) => {
  const swept = async () => {
    let chainNow = noon
    const newChain = () =>
      createSimulatedChain({ clock: () => chainNow, log: silentLog, identity: 'simulated' })
    const services = await servicesOn(database(), { chain: await newChain() })
    const { account } = await newPerson(database())
    const home = await openWallet(services, { accountId: account.id, at: noon })
    const { key } = buildKeyPrincipal(account)
    await insertKey(database(), account.id, { ...key, secretHash: null })
    const { address } = purseKey(services.settings.dataKey, key.id)
    await openPurse(
      { database: database(), dataKey: services.settings.dataKey },
      { id: key.id, accountId: account.id, address, home, chunk: 0n, at: noon },
    )
    const fill = (chain: Chain) => chain.mint([{ token: 'USDC', to: address, units: 700n }])
    const purse = available(account.id, pursePlace(key.id))
    await fill(services.chain)
    const move = (source: LedgerAccount, destination: LedgerAccount, units: bigint) =>
      post(database(), {
        id: `move:${key.id}:${source}:${destination}`,
        kind: 'test',
        reference: key.id,
        at: noon,
        postings: [{ source, destination, money: { asset: 'USDC', units } }],
      })
    await move(external('base-sepolia'), purse, 700n)
    await sweepPurses(services, running)
    const replaced = async () => {
      const chain = await newChain()
      await fill(chain)
      return chain
    }
    const verify = (chain: Chain, minutes = 0) => {
      chainNow = new Date(noon.getTime() + minutes * 60_000)
      const clock = () => new Date(noon.getTime() + minutes * 60_000)
      return verifySettled({ ...services, chain, clock }, { since: noon, identity: 'simulated' }, running)
    }
    const readBooked = async () => {
      const rows = await balances(database(), account.id)
      return [pursePlace(key.id), 'base-sepolia'].map(
        (place) => rows.find((row) => row.place === place)?.available ?? 0n,
      )
    }
    const wallet = available(account.id, 'base-sepolia')
    return { services, home, address, replaced, verify, readBooked, move, wallet }
  }

  it('is sent again', async () => {
    const { home, replaced, verify, readBooked } = await swept()
    const chain = await replaced()
    expect(await verify(chain)).toBe(1)
    expect(await verify(chain)).toBe(0)
    expect(await chain.readBalance('USDC', home)).toBe(700n)
    expect(await readBooked()).toEqual([0n, 700n])
  })

  it('is booked back once the chain can no longer bring it, and goes to the wallet anew', async () => {
    const { services, home, replaced, verify, readBooked } = await swept()
    const chain = await replaced()
    for (let round = 0; round < 2; round += 1) expect(await verify(chain, 6)).toBe(0)
    expect(await readBooked()).toEqual([700n, 0n])
    const later = { ...services, chain, clock: () => new Date(noon.getTime() + 6 * 60_000) }
    await sweepPurses(later, running)
    expect(await readBooked()).toEqual([0n, 700n])
    expect(await chain.readBalance('USDC', home)).toBe(700n)
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('raises an alarm where the wallet has spent the money, and is booked back when it returns', async () => {
    const { replaced, verify, readBooked, move, wallet } = await swept()
    const chain = await replaced()
    await move(wallet, external('base-sepolia'), 300n)
    expect(await verify(chain, 6)).not.toBe(0)
    expect(await readBooked()).toEqual([0n, 400n])
    const alarms = await database().kysely.selectFrom('alarm').select('reason').execute()
    expect(alarms.map(({ reason }) => reason)).toContain('sweep_undone')
    await move(external('base-sepolia'), wallet, 300n)
    await verify(chain, 6)
    expect(await readBooked()).toEqual([700n, 0n])
  })
})
