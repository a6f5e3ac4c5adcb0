/** What the journal keeps of a change: bounded for an entry, and for an account and day. */
import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { newId } from '../../../src/core/base/ids.ts'
import { canonicalJson, type Json } from '../../../src/core/base/json.ts'
import { journalPages, listJournal } from '../../../src/records/journal/read.ts'
import { verifyJournal } from '../../../src/records/journal/verify.ts'
import { type Change, createJournal } from '../../../src/records/journal/write.ts'
import { onBothEngines } from '../../engines.ts'
import { dataKey, newOwner, noon } from '../../rails/cards/scene.ts'

const hashState = (state: Json) => createHash('sha256').update(canonicalJson(state)).digest('hex')
const addresses = (count: number, first = 0) =>
  Array.from({ length: count }, (_, at) => `0x${(first + at).toString(16).padStart(40, '0')}`)

onBothEngines('the journal', (database) => {
  const journal = createJournal({ dataKey, newId })
  const write = (accountId: string, change: Partial<Change> = {}) =>
    database().transaction((connection) =>
      journal(connection, {
        accountId,
        actor: { kind: 'person', id: accountId },
        action: 'key.updated',
        object: { kind: 'key', id: 'key_1' },
        at: noon,
        ...change,
      }),
    )
  const newest = async (accountId: string) => {
    const { entries } = await listJournal(database(), { accountId, page: { limit: 1, after: null } })
    return entries[0]?.content
  }

  it('keeps small states whole', async () => {
    const id = await newOwner(database(), {})
    const states = { before: { status: 'active', list: ['a'] }, after: { status: 'paused', list: ['a'] } }
    await write(id, states)
    const content = await newest(id)
    expect(content).toMatchObject(states)
    expect(content).not.toHaveProperty('beforeHash')
  })

  it('keeps of larger states what changed, and their hashes', async () => {
    const id = await newOwner(database(), {})
    const [kept, other] = [addresses(500), addresses(1, 9_000)]
    const before = {
      status: 'active',
      policy: { deny: kept, allow: addresses(40), max: '5', note: 'n'.repeat(200) },
    }
    const after = { ...before, policy: { ...before.policy, deny: [...kept.slice(1), ...other], max: '6' } }
    await write(id, { before, after })
    const content = await newest(id)
    expect(content).toMatchObject({ beforeHash: hashState(before), afterHash: hashState(after) })
    expect(content?.before).toEqual({ status: 'active', policy: { deny: kept.slice(0, 1), max: '5' } })
    expect(content?.after).toEqual({ status: 'active', policy: { deny: other, max: '6' } })
  })

  it('keeps no entry over 10 KB, whatever the state', async () => {
    const id = await newOwner(database(), {})
    const states: readonly Json[] = [
      { policy: { deny: addresses(2_000), allow: addresses(2_000, 5_000) }, status: 'active' },
      { text: 'x'.repeat(100_000) },
      { text: '\u{1F600}'.repeat(50_000), other: '\u0001'.repeat(50_000) },
      Array.from({ length: 20_000 }, (_, at) => at % 10),
      Object.fromEntries(addresses(2_000).map((name) => [name, 1])),
      Object.fromEntries([['k'.repeat(50_000), 1]]),
      [[[[addresses(3_000)]]]],
      Array.from({ length: 3_000 }, () => ({})),
    ]
    for (const after of states)
      for (const change of [{ after }, { before: after }, { before: after, after: { changed: after } }])
        await write(id, change)
    const sizes = await database().call<{ bytes: number }>(
      {
        name: 'test_sizes',
        text: 'select octet_length(row_to_json(j)::text) as bytes from journal_entry j where account_id = $1',
      },
      [id],
    )
    expect(sizes).toHaveLength(states.length * 3)
    for (const { bytes } of sizes) expect(Number(bytes)).toBeLessThan(10_000)
    const [first] = states
    await write(id, { after: first ?? null })
    expect(await newest(id)).toMatchObject({
      after: { status: 'active', policy: { deny: expect.arrayContaining(['… and 1970 more']) } },
    })
  })

  it('keeps hashes alone after a mebibyte of a day, and refuses what stops nothing after four', async () => {
    const id = await newOwner(database(), {})
    const after = { status: 'active', policy: addresses(2_000) }
    const tomorrow = new Date(noon.getTime() + 24 * 60 * 60_000)
    const use = (bytes: number) =>
      database().call(
        { name: 'test_use', text: 'update journal_usage set bytes = $2 where account_id = $1' },
        [id, bytes],
      )
    await write(id, { after })
    await use(1_048_576)
    await write(id, { before: after, after: { ...after, status: 'paused' } })
    expect(await newest(id)).toMatchObject({ before: null, after: null, beforeHash: hashState(after) })
    // Its agents have a budget of their own.
    await write(id, {
      actor: { kind: 'key', id: 'key_1' },
      action: 'card.issued',
      after: { status: 'active' },
    })
    expect(await newest(id)).toMatchObject({ after: { status: 'active' } })
    await use(4 * 1_048_576)
    await expect(write(id, { after })).rejects.toMatchObject({
      code: 'rate_limited',
      members: { retryAfter: 12 * 3_600 },
    })
    await expect(write(id, { action: 'key.created', after })).rejects.toMatchObject({ code: 'rate_limited' })
    // A stolen session has used it up; its owner, with the second factor, has as much again.
    await write(id, { isProven: true, after: { status: 'active', policy: 'tighter' } })
    await use(8 * 1_048_576)
    await expect(write(id, { isProven: true, after })).rejects.toMatchObject({ code: 'rate_limited' })
    for (const action of [
      'key.paused',
      'key.revoked',
      'account.locked',
      'approval.rejected',
      'factor.removed',
    ])
      await write(id, { action, after })
    await write(id, { action: 'card.updated', after: { status: 'frozen' } })
    await write(id, { actor: { kind: 'admin', id }, after })
    await write(id, { at: tomorrow, after: { status: 'active' } })
    expect(await newest(id)).toMatchObject({ after: { status: 'active' } })
  })

  it('stays one chain that verifies', async () => {
    const report = await verifyJournal(journalPages(database()), { dataKey })
    expect(report.fault).toBeNull()
    expect(report.head.sequence).toBeGreaterThan(29n)
  })
})
