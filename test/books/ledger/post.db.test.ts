import { expect, it } from 'vitest'
import { available, external, held, revenue } from '../../../src/books/ledger/accounts.ts'
import { balances, readSystemBalance } from '../../../src/books/ledger/balances.ts'
import { type Posting, post } from '../../../src/books/ledger/post.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { onBothEngines } from '../../engines.ts'

const at = new Date('2026-11-20T12:00:00.000Z')
const usdc = (units: bigint) => ({ asset: 'USDC' as const, units })

onBothEngines('post', (database) => {
  let count = 0
  const book = (reference: string, postings: readonly Posting[], id = `test:${count++}`) =>
    post(database(), { id, kind: 'test', reference, at, postings })

  it('moves money in several postings and assets at once, and nets intermediate amounts', async () => {
    const [ann, bob] = ['acct_ann', 'acct_bob']
    await book('in', [
      { source: external('bank'), destination: available(ann, 'bank'), money: { asset: 'EUR', units: 500n } },
      { source: external('base'), destination: available(ann, 'base'), money: usdc(100n) },
      { source: available(ann, 'base'), destination: available(bob, 'base'), money: usdc(90n) },
      { source: available(bob, 'base'), destination: revenue('fees'), money: usdc(1n) },
    ])
    expect(await balances(database(), ann)).toEqual([
      { place: 'bank', asset: 'EUR', available: 500n, held: 0n, frozen: 0n },
      { place: 'base', asset: 'USDC', available: 10n, held: 0n, frozen: 0n },
    ])
    expect(await balances(database(), bob)).toEqual([
      { place: 'base', asset: 'USDC', available: 89n, held: 0n, frozen: 0n },
    ])
    expect(await readSystemBalance(database(), external('base'), 'USDC')).toBe(-100n)
    expect(await readSystemBalance(database(), revenue('fees'), 'USDC')).toBe(1n)
    expect(await readSystemBalance(database(), revenue('fees'), 'EUR')).toBe(0n)
  })

  it('rejects an overdraft, with decimals in the message, and changes nothing', async () => {
    const cid = 'acct_cid'
    await book('in', [
      { source: external('base'), destination: available(cid, 'base'), money: usdc(3_000_000n) },
    ])
    const refused = book('out', [
      { source: external('base'), destination: available('acct_dot', 'base'), money: usdc(5n) },
      { source: available(cid, 'base'), destination: external('base'), money: usdc(12_500_000n) },
    ])
    await expect(refused).rejects.toMatchObject({
      code: 'insufficient_funds',
      message: 'acct_cid:base:available has 3 USDC; 12.5 USDC needed.',
      members: { hint: 'Add funds first.' },
    })
    expect(await balances(database(), cid)).toMatchObject([{ available: 3_000_000n }])
    expect(await trialBalance(database())).toMatchObject({ balanced: true })
  })

  it('rejects a debit of an account that never had money', async () => {
    const postings = [{ source: held('acct_none', 'base'), destination: external('base'), money: usdc(1n) }]
    await expect(book('out', postings)).rejects.toMatchObject({ code: 'insufficient_funds' })
  })

  it('books an id once, also under concurrent calls', async () => {
    const postings = [
      { source: external('base'), destination: available('acct_eve', 'base'), money: usdc(7n) },
    ]
    const verdicts = await Promise.all([1, 2, 3].map(() => book('in', postings, 'once')))
    expect(verdicts.sort()).toEqual(['already_posted', 'already_posted', 'posted'])
    const out = [{ source: available('acct_eve', 'base'), destination: external('base'), money: usdc(7n) }]
    const ends = await Promise.all([1, 2, 3].map(() => book('out', out, 'out once')))
    expect(ends.sort()).toEqual(['already_posted', 'already_posted', 'posted'])
    expect(await balances(database(), 'acct_eve')).toMatchObject([{ available: 0n }])
  })

  it('keeps amounts beyond the precision of a double', async () => {
    const units = 9_007_199_254_740_993n
    await book('in', [
      { source: external('base'), destination: available('acct_fay', 'base'), money: usdc(units) },
    ])
    expect(await balances(database(), 'acct_fay')).toMatchObject([{ available: units }])
  })

  it('shows an owner no balance of another with a common id prefix', async () => {
    await book('in', [
      { source: external('base'), destination: available('acct_eve2', 'base'), money: usdc(1n) },
    ])
    expect(await balances(database(), 'acct_eve2')).toHaveLength(1)
    expect(await balances(database(), 'acct_ev')).toEqual([])
  })

  it('detects a materialized balance that differs from the sum of its postings', async () => {
    const rollback = new Error('undo')
    const tampered = database().transaction(async (connection) => {
      await connection.kysely
        .updateTable('balance')
        .set({ units: 1_000n })
        .where('account', '=', 'acct_eve2:base:available')
        .execute()
      const { balanced, drifts, totals } = await trialBalance(connection)
      expect({ balanced, drifts }).toEqual({
        balanced: false,
        drifts: [{ account: 'acct_eve2:base:available', asset: 'USDC', materialized: 1_000n, posted: 1n }],
      })
      expect(totals.find(({ asset }) => asset === 'USDC')?.total).toBe(999n)
      throw rollback
    })
    await expect(tampered).rejects.toBe(rollback)
    expect(await trialBalance(database())).toMatchObject({ balanced: true })
  })

  it.each(['posting', 'decision'])('rejects changing or emptying %s', async (table) => {
    await database().call(
      {
        name: 'test_decision',
        text: `insert into decision (id, at, account_id, operation, facts, verdict, violations)
        values ('dec_1', now(), 'acct_1', 'test', '{}', 'allow', '[]') on conflict do nothing`,
      },
      [],
    )
    for (const text of [
      `update ${table} set asset = ''`,
      `delete from ${table}`,
      `truncate ${table} cascade`,
    ]) {
      const statement = table === 'posting' ? text : text.replace("asset = ''", "id = ''")
      await expect(
        database().call({ name: statement.replace(/\W/g, '_'), text: statement }, []),
      ).rejects.toThrow('append-only')
    }
  })
})
