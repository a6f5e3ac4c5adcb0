/** Decisions inserted or changed by a database writer: none is signed, and none blocks the others. */
import { beforeAll, expect, it } from 'vitest'
import {
  authenticatedReserve,
  createDecisionAuthenticator,
} from '../../../src/books/spending/authenticate.ts'
import type { ContentRow } from '../../../src/books/spending/decision-content.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { canonicalJson } from '../../../src/core/base/json.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import { createSealRound } from '../../../src/records/decisions/seal-decisions.ts'
import { buildSpend, noon, openAccount, openKey } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import { insertDecisions, never, newSpender, readChain, sealingDependencies, settings } from './scene.ts'

const after = (ms: number) => new Date(noon.getTime() + ms)
const violation = { rule: 'asset', limit: null, used: null, requested: null, remaining: null, resetsAt: null }

onBothEngines('the authenticity of decisions', (database) => {
  let spender: Awaited<ReturnType<typeof newSpender>>
  beforeAll(async () => {
    spender = await newSpender(database())
  })
  const run = (text: string, parameters: readonly string[]) =>
    database().call({ name: `test_${text.length}_${text.slice(7, 40)}`, text }, parameters)
  /** Runs as a superuser, who can disable triggers. */
  const change = async (set: string, id: string) => {
    await run('alter table decision disable trigger append_only_rows', [])
    await run(`update decision set ${set} where id = $1`, [id])
    await run('alter table decision enable trigger append_only_rows', [])
  }
  const seal = (at = noon) => createSealRound(sealingDependencies(database(), () => at))(never)
  const isSealed = async (id: string) =>
    (await readChain(database())).some(({ decision_id }) => decision_id === id)
  const readAlarms = async (id: string) =>
    (
      await database()
        .kysely.selectFrom('alarm')
        .select('reason')
        .where('domain', '=', 'audit')
        .where('object_id', '=', id)
        .execute()
    ).map(({ reason }) => reason)

  it('exists for every verdict by the time of the answer', async () => {
    const poor = await newSpender(database())
    const limited = { dailyMaxMicros: 0n, dailyMaxCount: null }
    const ids = [
      await spender.decide(),
      await spender.decide({ needsApproval: true }),
      await spender.decide({ violations: [violation] }),
      await spender.decide({ key: { id: spender.keyId, policyVersion: 1, limits: limited } }),
      await spender.decide({
        violations: [violation],
        key: { id: spender.keyId, policyVersion: 1, limits: limited },
      }),
      await poor.decide({}, { units: 5_000_000_000n }),
    ]
    const rows = await database()
      .kysely.selectFrom('decision')
      .select(['id', 'verdict', 'mac'])
      .where('id', 'in', ids)
      .orderBy('id')
      .execute()
    expect(rows.map(({ verdict }) => verdict).sort()).toEqual([
      'allow',
      'approval_required',
      'deny',
      'deny',
      'deny',
      'insufficient_funds',
    ])
    expect(rows.filter(({ mac }) => mac === null)).toEqual([])
    await seal()
    for (const id of ids) expect([id, await isSealed(id)]).toEqual([id, true])
  })

  it.each([
    ['a denial made an approval', `verdict = 'allow', violations = '[]'`],
    ['another amount', `facts = facts || '{"amount":"999"}'`],
    ['another account', `account_id = 'acct_other'`],
    ['another key', `key_id = 'key_other'`],
    ['another time', `at = at + interval '1 millisecond'`],
    ['other violations', `violations = '[]'`],
    ['another policy', `policy_hash = 'other'`],
  ])('does not verify for %s', async (_what, set) => {
    const [forged, honest] = [await spender.decide({ violations: [violation] }), await spender.decide()]
    await change(set, forged)
    await seal()
    expect([await isSealed(forged), await isSealed(honest)]).toEqual([false, true])
    expect(await readAlarms(forged)).toEqual(['not_authentic'])
    // A restarted process detects it again, without a new alarm.
    await seal()
    expect(await readAlarms(forged)).toEqual(['not_authentic'])
  })

  it('does not verify for a copy under another id', async () => {
    const id = await spender.decide()
    const copy = newId('dec', noon)
    await run(
      `insert into decision select (jsonb_populate_record(null::decision, to_jsonb(d) || jsonb_build_object('id', $2::text))).*
        from decision d where id = $1`,
      [id, copy],
    )
    await seal()
    expect([await isSealed(id), await isSealed(copy)]).toEqual([true, false])
    expect(await readAlarms(copy)).toEqual(['not_authentic'])
  })

  it('is awaited, and reported missing after five minutes', async () => {
    const accountId = await openAccount(database(), 1_000_000n)
    const keyId = await openKey(database(), accountId)
    const insertKilled = async () => {
      // A process that died between its reserve and the MAC of a denial by a counter.
      const limits = { dailyMaxMicros: 0n, dailyMaxCount: null }
      const request = buildSpend({ accountId, keyId, limits }, 1n)
      const decided = await reserveSpend(database(), { ...request, mac: 'a'.repeat(64) })
      expect(decided.verdict).toBe('deny')
      return request.decisionId
    }
    const [late, lost] = [await insertKilled(), await insertKilled()]
    let now = after(1_000)
    const round = createSealRound(sealingDependencies(database(), () => now))
    await round(never)
    expect([await readAlarms(late), await readAlarms(lost)]).toEqual([[], []])
    const made = await database().call<{ made: ContentRow[] }>(
      { name: 'test_made', text: 'select decisions_made(array[$1]) as made' },
      [late],
    )
    await createDecisionAuthenticator({
      dataKey: settings.dataKey,
      log: sealingDependencies(database()).log,
      unstoredCodes: new Map(),
    })(database(), made[0]?.made ?? [])
    await spender.decide()
    await round(never)
    expect([await isSealed(late), await isSealed(lost)]).toEqual([true, false])
    now = after(301_000)
    await round(never)
    expect([await readAlarms(late), await readAlarms(lost)]).toEqual([[], ['unauthenticated']])
  })

  it('is stored by the next round when the database was lost for minutes', async () => {
    const accountId = await openAccount(database(), 1_000_000n)
    const keyId = await openKey(database(), accountId)
    const parts = sealingDependencies(database(), () => after(600_000))
    const lost = {
      call: database().call,
      gather: () => Promise.reject(new Failure('provider_unavailable', 'The database is unreachable.')),
    }
    const reserve = authenticatedReserve((request) => reserveSpend(database(), request), {
      ...parts,
      ...settings,
      database: Object.assign(Object.create(database()), lost),
    })
    const limits = { dailyMaxMicros: 0n, dailyMaxCount: null }
    const request = buildSpend({ accountId, keyId, limits }, 1n)
    expect(await reserve(request)).toMatchObject({ verdict: 'deny', replayed: false })
    const { decisionId } = request
    const [row] = await database()
      .kysely.selectFrom('decision')
      .select('mac')
      .where('id', '=', decisionId)
      .execute()
    expect(row?.mac).toBeNull()
    const round = createSealRound(parts)
    await round(never)
    expect([await isSealed(decisionId), await readAlarms(decisionId)]).toEqual([true, []])
    expect(parts.unstoredCodes.size).toBe(0)
  })

  it('is written once and makes the row final', async () => {
    const id = await spender.decide()
    await expect(run('update decision set mac = $2 where id = $1', [id, 'b'.repeat(64)])).rejects.toThrow(
      /append-only/,
    )
    const [bare = ''] = await insertDecisions(database(), 1, { mac: null })
    await expect(run(`update decision set verdict = 'deny' where id = $1`, [bare])).rejects.toThrow(
      /append-only/,
    )
    await expect(run('delete from decision where id = $1', [bare])).rejects.toThrow(/append-only/)
  })

  it('does not verify for an id of another time, and flags a decision sealed hours late', async () => {
    const backdated = await spender.decide({ decisionId: newId('dec', after(-3_600_000)) })
    const late = await spender.decide()
    await seal(after(2 * 3_600_000))
    expect([await isSealed(backdated), await isSealed(late)]).toEqual([false, true])
    expect([await readAlarms(backdated), await readAlarms(late)]).toEqual([
      ['id_of_another_time'],
      ['sealed_late'],
    ])
  })

  it('raises an alarm when it is dated after the sandbox’s calendar, and none between clock and calendar', async () => {
    const onCalendar = (at: Date) => new Date(at.getTime() + 86_400_000)
    const decideAt = (at: Date) => spender.decide({ decisionId: newId('dec', at), at })
    const [ahead, settled] = [await decideAt(onCalendar(noon)), await decideAt(noon)]
    // Before the calendar was set ahead.
    const before = await decideAt(after(12 * 3_600_000))
    const beyond = await decideAt(onCalendar(onCalendar(noon)))
    await createSealRound({ ...sealingDependencies(database(), () => noon), onCalendar })(never)
    for (const id of [ahead, settled, before]) expect(await readAlarms(id)).toEqual([])
    expect(await readAlarms(beyond)).toEqual(['dated_ahead'])
  })

  it('raises an alarm when it is missing from a seal planted at the head of the chain', async () => {
    await seal()
    await spender.decide()
    const chain = await readChain(database())
    const [head] = chain.slice(-1)
    const [forged = ''] = await insertDecisions(database(), 1, { mac: null })
    await database()
      .kysely.insertInto('decision_seal')
      .values({
        sequence: (head?.sequence ?? 0n) + 1n,
        decision_id: forged,
        previous: head?.hash ?? '',
        hash: 'c'.repeat(64),
        receipt: head?.receipt ?? '',
        sealed_at: noon,
      })
      .execute()
    expect(await seal()).toBe(1)
    expect(await readAlarms(`seal ${(head?.sequence ?? 0n) + 1n}`)).toEqual(['seal_not_authentic'])
  })

  it('does not depend on the database’s JSON formatting', async () => {
    const facts = { z: 1, a: [1.5, -0, 1e21, 'é ', { nested: null }], amount: '1.250000', found: {} }
    const id = await spender.decide({ facts })
    expect(canonicalJson(facts)).toContain('"z":1')
    await seal()
    expect(await isSealed(id)).toBe(true)
  })
})
