/** The room of an account's answers: the oldest make room, those of the same key first, and nothing grows beyond it. */
import { sql } from 'kysely'
import { beforeEach, expect, it } from 'vitest'
import { createAnswerWriter, readPart } from '../../../src/rails/buying/answer.ts'
import { deleteOldDeliveries } from '../../../src/rails/buying/store.ts'
import type { Database } from '../../../src/storage/database.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, sandboxSettings } from '../../kernel/scene.ts'

const MIB = 1024 * 1024
const ROOM = 20 * MIB
const SHORT = 64 * 1024

let count = 0
let account = ''

interface Bought {
  readonly keyId?: string
  readonly state?: 'settled' | 'signed'
  readonly accountId?: string
}

onBothEngines('the room of answers', (database) => {
  beforeEach(() => {
    count += 1
    account = `account-${count}`
  })

  /** Buys an answer of so many bytes. @returns the bytes that were taken. */
  const buy = async (
    bytes: number,
    { keyId = 'key-1', state = 'settled', accountId = account }: Bought = {},
  ) => {
    count += 1
    const id = `buy_${String(count).padStart(6, '0')}`
    const at = new Date(noon.getTime() + count)
    await write(database(), { id, accountId, keyId, state, at })
    const settings = { dataKey: sandboxSettings.dataKey, answerRoomBytes: ROOM }
    const writer = createAnswerWriter(
      { database: database(), clock: () => at, settings },
      { id, account_id: accountId },
    )
    const chunk = Buffer.alloc(64 * 1024, 7)
    let taken = 0
    while (taken < bytes) {
      taken += chunk.length
      if (!(await writer.write(chunk))) break
    }
    const { stored } = await writer.finish(false)
    await database()
      .kysely.updateTable('purchase')
      .set({ delivered: Buffer.alloc(Math.min(bytes, SHORT)), delivered_at: at })
      .where('id', '=', id)
      .execute()
    return { id, taken, stored }
  }
  const listKept = async () => {
    const rows = await database()
      .kysely.selectFrom('purchase')
      .select('id')
      .where('account_id', '=', account)
      .where('delivered', 'is not', null)
      .orderBy('id')
      .execute()
    return rows.map(({ id }) => id)
  }
  const measure = async () => {
    const { rows } = await sql<{ bytes: string }>`select coalesce(sum(octet_length(sealed)), 0) as bytes
      from purchase_answer where account_id = ${account}`.execute(database().kysely)
    return Number(rows[0]?.bytes)
  }

  it('is made by the oldest answers', async () => {
    const bought = []
    for (let each = 0; each < 6; each += 1) bought.push(await buy(5 * MIB))
    expect(bought.every(({ taken }) => taken === 5 * MIB)).toBe(true)
    expect(await listKept()).toEqual(bought.slice(-3).map(({ id }) => id))
    expect(await measure()).toBeLessThan(ROOM)
    // What is gone has no part left, and what is kept has all of them.
    const { rows } = await sql<{ id: string; parts: string }>`select purchase_id as id, count(*) as parts
      from purchase_answer where account_id = ${account} group by 1 order by 1`.execute(database().kysely)
    expect(rows.map(({ id, parts }) => [id, Number(parts)])).toEqual(
      bought.slice(-3).map(({ id, stored }) => [id, stored?.parts]),
    )
  })

  it('is made by answers of the same key first, and never by those of others’ accounts', async () => {
    const stranger = await buy(5 * MIB, { accountId: `${account}-other` })
    const other = await buy(5 * MIB, { keyId: 'key-2' })
    const own = []
    for (let each = 0; each < 5; each += 1) own.push(await buy(5 * MIB))
    expect(await listKept()).toEqual([other.id, ...own.slice(-2).map(({ id }) => id)].sort())
    account = `${account}-other`
    expect(await listKept()).toEqual([stranger.id])
  })

  it('is not made by answers whose payment is open: then the newest is cut off', async () => {
    for (let each = 0; each < 3; each += 1) await buy(5 * MIB, { state: 'signed' })
    const { id, taken, stored } = await buy(30 * MIB)
    expect(taken).toBeLessThan(6 * MIB)
    let read = 0
    for (let part = 0; part < (stored?.parts ?? 0); part += 1) {
      const at = { receipt: stored?.receipt ?? '', part }
      const bytes = await readPart({ database: database(), dataKey: sandboxSettings.dataKey }, id, at)
      read += bytes?.length ?? 0
    }
    expect(read).toBe(taken)
    expect(await measure()).toBeLessThan(ROOM + MIB)
  })

  it('is kept by short answers too', async () => {
    for (let each = 0; each < 600; each += 1) await buy(SHORT)
    // One in 32 looks, and makes room for as many.
    expect((await listKept()).length * SHORT).toBeLessThan(ROOM + 64 * SHORT)
  })

  it('is not taken for good by an answer that was never whole', async () => {
    const { id } = await buy(15 * MIB)
    await database()
      .kysely.updateTable('purchase')
      .set({ delivered: null, delivered_at: null })
      .where('id', '=', id)
      .execute()
    await sql`update purchase_answer set written_at = written_at - interval '11 minutes'`.execute(
      database().kysely,
    )
    expect((await buy(15 * MIB)).taken).toBe(15 * MIB)
    await deleteOldDeliveries(database(), new Date(noon.getTime() + 86_400_000))
    expect(await measure()).toBe(0)
  })
})

async function write(
  database: Database,
  {
    id,
    accountId,
    keyId,
    state,
    at,
  }: { id: string; accountId: string; keyId: string; state: string; at: Date },
): Promise<void> {
  await database.transaction(async ({ kysely }) => {
    // The accounts, keys and decisions behind the rows do not matter here.
    await sql`set local session_replication_role = replica`.execute(kysely)
    await sql`insert into purchase (id, account_id, key_id, decision_id, purse_id, url, origin, seller, resource, method, request_hash,
        protocol, chain, network, asset, token, payer, pay_to, units, nonce, offer, credential_hash, state, transaction_hash,
        busy_until, created_at, updated_at)
      values (${id}, ${accountId}, ${keyId}, ${id}, 'purse', 'https://a.example/', 'https://a.example', 'https://a.example',
        'https://a.example/', 'GET', '', 'x402-v2', 'base-sepolia', 'eip155:84532', 'USDC', '0xa', '0xc', '0xb', 10, ${id}, '{}',
        'hash', ${state}, ${state === 'settled' ? '0xd' : null}, ${at}, ${at}, ${at})`.execute(kysely)
  })
}
