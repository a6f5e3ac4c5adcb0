/** Records of sellers: what is told of whose purchases. */
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import {
  findBoughtResources,
  findSellerOutcomes,
  findSellerRecords,
  findSharedResources,
} from '../../../src/rails/buying/seller-records.ts'
import type { Database } from '../../../src/storage/database.ts'
import { onBothEngines } from '../../engines.ts'
import { noon } from '../../kernel/scene.ts'

/** A paid purchase. Its order is that of the calls. */
interface Bought {
  readonly account: string
  readonly seller: string
  readonly path?: string
  readonly units?: number
  readonly payTo?: string
  readonly keyId?: string
  readonly tookMs?: number
  /** `open`: the seller is still asked. */
  readonly end?: 'delivered' | 'undelivered' | 'open'
}

let count = 0

async function buy(database: Database, ...all: readonly Bought[]): Promise<void> {
  await database.transaction(async ({ kysely }) => {
    // The accounts, keys and decisions behind the rows do not matter here.
    await sql`set local session_replication_role = replica`.execute(kysely)
    for (const { account, seller, path = '/', units = 10, payTo = '0xb', keyId = null, ...rest } of all) {
      count += 1
      const id = `buy_${String(count).padStart(6, '0')}`
      const { end = 'delivered', tookMs = 100 } = rest
      const deliveredAt = end === 'delivered' ? new Date(noon.getTime() + tookMs) : null
      await sql`insert into purchase (id, account_id, key_id, decision_id, purse_id, url, origin, seller, resource, method, request_hash,
          protocol, chain, network, asset, token, payer, pay_to, units, nonce, offer, credential_hash, state, transaction_hash,
          failure_code, delivered_at, busy_until, created_at, updated_at)
        values (${id}, ${account}, ${keyId}, ${id}, 'purse', ${seller + path}, ${seller}, ${seller}, ${seller + path}, 'GET', '',
          'x402-v2', 'base-sepolia', 'eip155:84532', 'USDC', '0xa', '0xc', ${payTo}, ${units}, ${id}, '{}', 'hash', 'settled', '0xd',
          ${end === 'undelivered' ? 'seller_failed' : null}, ${deliveredAt}, ${noon}, ${noon}, ${noon})`.execute(
        kysely,
      )
    }
  })
}

onBothEngines('records of sellers', (database) => {
  const readRecord = async (accountId: string, seller: string) =>
    (await findSellerRecords(database(), { accountId, sellers: [seller] })).get(seller)
  const readOutcomes = (accountId: string, seller: string) =>
    findSellerOutcomes(database(), { accountId, seller })

  it('are of the own purchases until five accounts stand behind them', async () => {
    const seller = 'https://five.example'
    for (const account of ['a', 'b', 'c', 'd']) await buy(database(), { account, seller, tookMs: 200 })
    await buy(database(), { account: 'a', seller, end: 'undelivered' })
    expect(await readRecord('a', seller)).toEqual({
      isShared: false,
      purchases: 2,
      delivered: 1,
      undelivered: 1,
      refunded: 0,
      medianMs: 200,
      lastAt: noon,
      priceChanges: 0,
      payeeChanges: 0,
    })
    expect(await readRecord('z', seller)).toBeUndefined()
    expect(await readOutcomes('z', seller)).toBe('')
    expect(await readOutcomes('a', seller)).toBe('01')
    await buy(database(), { account: 'e', seller, tookMs: 300 })
    expect(await readRecord('z', seller)).toMatchObject({ isShared: true, purchases: 6, delivered: 5 })
    expect(await readOutcomes('z', seller)).toBe('101111')
    expect(
      (await findSellerRecords(database(), { accountId: 'z', sellers: ['https://none.example'] })).size,
    ).toBe(0)
  })

  it('count what changed from one purchase to the next, and no purchase that has not ended', async () => {
    const seller = 'https://changing.example'
    const own = { account: 'a', seller }
    await buy(
      database(),
      { ...own, path: '/one', units: 10 },
      { ...own, path: '/two', units: 99 },
      { ...own, path: '/one', units: 11, payTo: '0xe' },
      { ...own, path: '/one', units: 11, payTo: '0xe', end: 'open' },
    )
    expect(await readRecord('a', seller)).toMatchObject({
      purchases: 4,
      delivered: 3,
      undelivered: 0,
      priceChanges: 1,
      payeeChanges: 1,
    })
    expect(await readOutcomes('a', seller)).toBe('111')
  })

  it('are made by nobody alone', async () => {
    const seller = 'https://praised.example'
    const failed = { seller, end: 'undelivered' } as const
    await buy(database(), ...['a', 'b', 'c', 'd'].map((account) => ({ account, ...failed })))
    await buy(database(), ...Array.from({ length: 90 }, () => ({ account: 'friend', seller })))
    // Ten of the friend's ninety, and the four others, whose last ones are looked at as soon as the friend's last.
    expect(await readOutcomes('z', seller)).toBe(`10000${'1'.repeat(9)}`)
    // One's own are all known, five of them in the first round.
    expect(await readOutcomes('friend', seller)).toBe(`${'1'.repeat(5)}0000${'1'.repeat(85)}`)
  })

  it('cannot be buried by one account, or made by two', async () => {
    const seller = 'https://buried.example'
    const failed = { seller, end: 'undelivered' } as const
    const victims = ['a', 'b', 'c', 'd', 'e', 'f']
    await buy(database(), ...victims.flatMap((account) => [0, 1, 2].map(() => ({ account, ...failed }))))
    expect(await readOutcomes('z', seller)).toBe('0'.repeat(18))
    await buy(database(), ...Array.from({ length: 1_100 }, () => ({ account: 'x-friend', seller })))
    const buried = await readOutcomes('z', seller)
    expect(buried.slice(0, 7)).toBe('1000000')
    expect(buried.replaceAll('1', '')).toBe('0'.repeat(18))
    expect(await readRecord('z', seller)).toMatchObject({ isShared: true, purchases: 28, undelivered: 18 })
    await buy(database(), ...Array.from({ length: 20 }, () => ({ account: 'y-friend', seller })))
    // Of the first twenty, two friends make a quarter, as two accounts of eight are.
    const first = (await readOutcomes('z', seller)).slice(0, 20)
    expect(first.replaceAll('0', '').length).toBeLessThanOrEqual(6)
  })

  it('name what the asker bought, a key only its own, and what many bought', async () => {
    const seller = 'https://listed.example'
    await buy(database(), { account: 'me', seller, path: '/mine', keyId: 'key_1' })
    await buy(database(), { account: 'me', seller, path: '/other', keyId: 'key_2', units: 12 })
    await buy(database(), { account: 'me', seller, path: '/other', keyId: 'key_2', units: 15 })
    const list = async (keyId: string | null) =>
      (await findBoughtResources(database(), { accountId: 'me', keyId })).map(({ resource, units }) => [
        resource.slice(seller.length),
        units,
      ])
    expect(await list(null)).toEqual([
      ['/other', 15n],
      ['/mine', 10n],
    ])
    expect(await list('key_1')).toEqual([['/mine', 10n]])
    const shared = { seller, path: '/report' }
    await buy(database(), ...['a', 'b', 'c', 'd', 'e'].map((account) => ({ account, ...shared, units: 7 })))
    await buy(database(), { account: 'f', ...shared, units: 1 })
    const found = await findSharedResources(database(), noon)
    expect(found.filter(({ origin }) => origin === seller)).toEqual([
      { resource: `${seller}/report`, origin: seller, seller, protocol: 'x402-v2', asset: 'USDC', units: 7n },
    ])
  })
})
