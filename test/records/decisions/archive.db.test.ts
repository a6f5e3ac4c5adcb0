/** Months of decisions that leave: what keeps them, what their files prove, what stays, and processes that end between the steps. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { available, external } from '../../../src/books/ledger/accounts.ts'
import { post } from '../../../src/books/ledger/post.ts'
import { authenticatedReserve } from '../../../src/books/spending/authenticate.ts'
import { releaseSpend } from '../../../src/books/spending/release.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { settleSpend } from '../../../src/books/spending/settle.ts'
import type { SpendRequest } from '../../../src/books/spending/spend-request.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { verifyArchive } from '../../../src/records/decisions/archive-files.ts'
import { type ArchiveStep, archiveMonth, planArchive } from '../../../src/records/decisions/archive-month.ts'
import { findArchiveEnd, readArchiveEnd, readArchives } from '../../../src/records/decisions/archive-store.ts'
import { createSealRound } from '../../../src/records/decisions/seal-decisions.ts'
import { refuseArchived, showDecisions } from '../../../src/records/decisions/show-decisions.ts'
import { readHead, sealedPages } from '../../../src/records/decisions/store.ts'
import { verifyChain } from '../../../src/records/decisions/verify-chain.ts'
import { writeBundle } from '../../../src/records/decisions/write-bundle.ts'
import type { Connection, Database } from '../../../src/storage/database.ts'
import { keepPartitions } from '../../../src/storage/partitions.ts'
import { buildSpend, openAccount, openKey, place } from '../../books/spending/scene.ts'
import { onBothEngines, testServerUrl } from '../../engines.ts'
import { never, sealingDependencies, settings } from './scene.ts'
import { canVerify, verifyBundle } from './verify-bundle.ts'

const now = new Date('2027-02-10T12:00:00.000Z')
const total = { rule: 'total_budget', period: 'life', maxMicros: 20_000_000n, maxCount: null } as const
const limits = { dailyMaxMicros: null, dailyMaxCount: null, longer: [total] }
const policyHash = createHash('sha256').update('{}').digest('hex')
const page = { limit: 20, after: null }

async function run<Row>({ kysely }: Connection, text: string): Promise<readonly Row[]> {
  return (await sql.raw<Row>(text).execute(kysely)).rows
}

onBothEngines('an archive', (database) => {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-archive-'))
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  let accountId: string
  let keyId: string
  const request = (at: string, changes: Partial<SpendRequest> = {}) =>
    buildSpend({ accountId, keyId, limits }, 1_000_000n, {
      decisionId: newId('dec', new Date(at)),
      policyHash,
      at: new Date(at),
      facts: {
        ...{ category: 'transfer', amount: '1', asset: 'USDC', usdMicros: '1000000', task: 'rent' },
        found: { secret: 'not for histories' },
      },
      ...changes,
    })
  const decide = async (spend: SpendRequest) => {
    const reserve = (authenticated: SpendRequest) => reserveSpend(database(), authenticated)
    const decided = await authenticatedReserve(reserve, {
      ...{ database: database(), dataKey: settings.dataKey, log: silentLog, unstoredCodes: new Map() },
    })(spend)
    return decided.verdict
  }
  /** Decides, and ends what was allowed. */
  const spend = async (at: string, changes: Partial<SpendRequest> = {}) => {
    const made = request(at, changes)
    const verdict = await decide(made)
    if (verdict === 'allow')
      await settleSpend(database(), {
        ...{ decisionId: made.decisionId, destination: external(place), at: made.at },
      })
    return made.decisionId
  }
  const seal = async () => {
    const round = createSealRound(sealingDependencies(database(), () => now))
    await round(never)
    await round(never)
  }
  const archive = (
    month: string,
    {
      out = join(directory, month),
      step = () => {},
      progress = () => {},
      at = now,
    }: { out?: string; step?: (at: ArchiveStep) => void; progress?: (text: string) => void; at?: Date } = {},
  ) =>
    archiveMonth({
      ...{
        database: database(),
        issuer: settings.origin,
        key: settings.receiptKey,
        dataKey: settings.dataKey,
      },
      ...{ month, out, keep: 13, now: at, progress, step },
    })
  const plan = (month: string) => planArchive(database(), { month, keep: 13, now, dataKey: settings.dataKey })
  const listMonths = async () =>
    (
      await run<{ month: string; count: number }>(
        database(),
        "select to_char(at at time zone 'UTC', 'YYYY-MM') as month, count(*)::int as count from decision group by 1 order by 1",
      )
    ).map(({ month, count }) => `${month}: ${count}`)
  const verifyRest = async (connection: Database) => {
    const start = findArchiveEnd(await readArchives(connection, settings.dataKey))
    return verifyChain(sealedPages(connection, { start: start.sequence }), {
      ...{ keySet: settings.receiptKey.keySet, start, expected: await readHead(connection) },
    })
  }
  const expectIntact = async () => {
    expect((await verifyRest(database())).fault).toBeNull()
  }
  /** Exports a month and recomputes it. */
  const recompute = async (bundle: string) => {
    if (!canVerify) return
    expect(await verifyBundle(bundle)).toMatchObject({
      err: expect.not.stringContaining('fault'),
      ...{ code: 0, out: expect.stringContaining('as recomputed') },
    })
  }
  /** Changes a row as somebody could who has the database. */
  const tamper = async (table: string, text: string) => {
    await run(database(), `alter table ${table} disable trigger user`)
    await run(database(), text)
    await run(database(), `alter table ${table} enable trigger user`)
  }
  const ids: Record<string, string> = {}

  beforeAll(async () => {
    for (const month of ['01', '02', '03'])
      await keepPartitions(database(), new Date(`2025-${month}-10T00:00:00Z`))
    accountId = await openAccount(database(), 0n)
    await post(database(), {
      ...{ id: newId('tx', now), kind: 'deposit', reference: 'test', at: new Date('2024-12-01T00:00:00Z') },
      postings: [
        {
          ...{ source: external(place), destination: available(accountId, place) },
          money: { asset: 'USDC', units: 1_000_000_000n },
        },
      ],
    })
    keyId = await openKey(database(), accountId)
    await database()
      .kysely.updateTable('access_key')
      .set({ policy: '{}', policy_hash: policyHash })
      .where('id', '=', keyId)
      .execute()
    ids.first = await spend('2025-01-05T00:00:00.000Z')
    ids.denied = await spend('2025-01-06T00:00:00.000Z', {
      violations: [
        { rule: 'categories', limit: null, used: null, requested: null, remaining: null, resetsAt: null },
      ],
    })
    await spend('2025-01-31T23:59:59.000Z')
    // A decision of February is sealed before one of January.
    ids.early = await spend('2025-02-01T00:00:00.100Z')
    await seal()
    ids.late = await spend('2025-01-31T23:59:59.900Z')
    await seal()
    await spend('2025-02-15T00:00:00.000Z')
    await spend('2025-03-15T00:00:00.000Z')
    ids.newest = await spend('2027-02-01T00:00:00.000Z')
    await seal()
  })

  it('keeps the last months, and lets the oldest go first', async () => {
    await expect(plan('2026-02')).rejects.toThrow(
      /the last 13 months do. The newest that may leave is 2026-01/,
    )
    const soon = { month: '2025-01', keep: 1, dataKey: settings.dataKey }
    await expect(
      planArchive(database(), { ...soon, now: new Date('2025-02-01T00:59:59.999Z') }),
    ).rejects.toThrow(/The newest that may leave is 2024-12/)
    await planArchive(database(), { ...soon, now: new Date('2025-02-01T01:00:00.000Z') })
    await expect(plan('2025-02')).rejects.toThrow(/archive 2025-01 first/)
    await expect(plan('2024-12')).rejects.toThrow(/no decisions of 2024-12/)
    for (const month of ['0000-01', '1969-12', '2024-12', '2027-02', '2031-05'])
      await expect(archive(month)).rejects.toThrow(/no decisions of|the last 13 months do/)
    const tables = await run<{ name: string }>(
      database(),
      "select inhrelid::regclass::text as name from pg_inherits where inhparent = 'decision'::regclass order by 1",
    )
    expect(tables.map(({ name }) => name)).toEqual([
      ...['decision_2025_01', 'decision_2025_02', 'decision_2025_03', 'decision_2025_04'],
      ...['decision_2025_05', 'decision_default'],
    ])
  })

  it('names what still needs a decision', async () => {
    const open = request('2025-01-20T00:00:00.000Z')
    expect(await decide(open)).toBe('allow')
    await seal()
    await expect(archive('2025-01')).rejects.toThrow(/still needs its decisions: 1 spends that hold money/)
    await releaseSpend(database(), { decisionId: open.decisionId, at: open.at })
  })

  it('keeps what a repeated call, or a due time whose gateway ended, finds its payment by', async () => {
    const at = '2025-01-31T20:00:00.000Z'
    await run(
      database(),
      `insert into idempotency (principal, key, fingerprint, decision_id, created_at) values ('${keyId}', 'rent', 'f', '${ids.first}', '${at}')`,
    )
    const planAt = (time: string) =>
      planArchive(database(), {
        ...{ month: '2025-01', keep: 1, now: new Date(time), dataKey: settings.dataKey },
      })
    await expect(planAt('2025-02-01T20:00:00.000Z')).rejects.toThrow(/1 calls that may be repeated/)
    await planAt('2025-02-01T20:00:00.001Z')
    await run(
      database(),
      `insert into schedule (id, account_id, operation, input, unit, step, tz, starts_at, grace_hours, next_index, created_at, updated_at)
        values ('sch_due', '${accountId}', 'wallets.transfer', '{}', 'month', 1, 'UTC', now(), 24, 1, now(), now())`,
    )
    await run(
      database(),
      `insert into schedule_run (schedule_id, at, status, claimed_at, busy_until) values ('sch_due', now(), 'running', '${at}', now())`,
    )
    await expect(planAt('2025-02-03T00:00:00.000Z')).rejects.toThrow(/1 runs of schedules/)
    await run(database(), "update schedule_run set status = 'missed', ended_at = now()")
  })

  it('waits for seals', async () => {
    const open = request('2025-01-21T00:00:00.000Z')
    await decide(open)
    await releaseSpend(database(), { decisionId: open.decisionId, at: open.at })
    await expect(archive('2025-01')).rejects.toThrow(/of which \d+ are in the chain/)
    await seal()
  })

  it('does not let a month leave with a tampered decision', async () => {
    const before = await listMonths()
    const [row] = await run<{ facts: string }>(
      database(),
      `select facts::text as facts from decision where id = '${ids.first}'`,
    )
    const set = (facts: string) =>
      tamper('decision', `update decision set facts = '${facts}' where id = '${ids.first}'`)
    await set(JSON.stringify({ amount: '0.01' }))
    await expect(archive('2025-01')).rejects.toThrow(/content changed/)
    await set(row?.facts ?? '')
    await tamper(
      'decision_seal',
      `update decision_seal set receipt = 'a..b' where decision_id = '${ids.first}'`,
    )
    rmSync(join(directory, '2025-01.partial'), { recursive: true, force: true })
    const broken = archive('2025-01', { out: join(directory, 'broken') })
    await expect(broken).rejects.toThrow()
    const { issuer, receipt } = await repairedSeal(ids.first ?? '')
    await tamper(
      'decision_seal',
      `update decision_seal set receipt = '${receipt}', issuer = ${issuer} where decision_id = '${ids.first}'`,
    )
    expect(existsSync(join(directory, '2025-01'))).toBe(false)
    expect(await listMonths()).toEqual(before)
    await expectIntact()
  })

  /** The receipt of a decision, signed anew. */
  const repairedSeal = async (id: string) => {
    const { signReceipt, detachPayload } = await import('../../../src/records/decisions/receipt.ts')
    const { contentColumns, toContent } = await import('../../../src/books/spending/decision-content.ts')
    const [row] = await run<Parameters<typeof toContent>[0]>(
      database(),
      `select ${contentColumns} from decision d where d.id = '${id}'`,
    )
    if (row === undefined) throw new Error('the decision is gone')
    const receipt = await signReceipt(settings.receiptKey, {
      issuer: settings.origin,
      content: toContent(row),
    })
    return { receipt: detachPayload(receipt), issuer: `'${settings.origin}'` }
  }

  it('keeps a month of which a decision is needed again while its files are verified', async () => {
    const before = await listMonths()
    const set = (status: string, end: string) =>
      `update reservation set status = '${status}', resolved_at = ${end} where decision_id = '${ids.first}'`
    let opened: Promise<unknown> = Promise.resolve()
    const began = archive('2025-01', {
      out: join(directory, 'needed'),
      step: (step) => {
        if (step === 'written') opened = run(database(), set('reserved', 'null'))
      },
    })
    await expect(began).rejects.toThrow(/still needs its decisions: 1 spends that hold money/)
    await opened
    await run(database(), set('settled', 'now()'))
    expect(await listMonths()).toEqual(before)
  })

  it.each(['written', 'verified', 'named', 'kept', 'left'] as const)(
    'goes on after it ended when it had %s',
    async (last) => {
      const before = await listMonths()
      const isThere = async () => (await listMonths()).some((line) => line.startsWith('2025-01: 6'))
      await expect(
        archive('2025-01', {
          step: (step) => {
            if (step === last) throw new Error('ended')
          },
        }),
      ).rejects.toThrow('ended')
      const hasFiles = existsSync(join(directory, '2025-01', 'manifest.jws'))
      expect(hasFiles || (await isThere())).toBe(true)
      if (last !== 'left') expect(await listMonths()).toEqual(before)
      else expect(await listMonths()).not.toEqual(before)
      await expectIntact()
    },
  )

  it('finishes, with the edge of the month left behind', async () => {
    expect(await archive('2025-01')).toMatchObject({ decisions: null })
    const tables = await run<{ name: string | null }>(
      database(),
      "select to_regclass('decision_2025_01')::text as name union all select to_regclass('decision_seal_2025_01')::text",
    )
    expect(tables).toEqual([{ name: null }, { name: null }])
    // Those that were sealed after the first of February stay.
    expect(await listMonths()).toEqual(['2025-01: 3', '2025-02: 2', '2025-03: 1', '2027-02: 1'])
    const end = await readArchiveEnd(database())
    expect(end).toMatchObject({ month: '2025-01', sequence: 3n })
    await expectIntact()
    await expect(run(database(), 'delete from decision_default')).rejects.toThrow(/append-only/)
    await expect(run(database(), 'delete from archive')).rejects.toThrow(/append-only/)
    await expect(run(database(), "update archived_decision set facts = '{}'")).rejects.toThrow(/append-only/)
    await expect(archive('2025-01', { out: join(directory, 'again') })).resolves.toMatchObject({
      decisions: null,
    })
  })

  it('has written books that others recompute', async () => {
    const out = join(directory, '2025-01')
    const keySet = settings.receiptKey.keySet
    const start = { sequence: 0n, hash: '0'.repeat(64) }
    expect(await verifyArchive(out, { keySet, start, through: 3n })).toMatchObject({
      first: 1n,
      through: { sequence: 3n },
    })
    const copy = join(directory, 'copy')
    cpSync(out, copy, { recursive: true })
    execFileSync(
      'gunzip',
      readdirSync(copy)
        .filter((name) => name.endsWith('.gz'))
        .map((name) => join(copy, name)),
    )
    await recompute(copy)
    const cut = join(directory, 'cut')
    cpSync(out, cut, { recursive: true })
    writeFileSync(join(cut, 'decisions.jsonl.gz'), '')
    await expect(verifyArchive(cut, { keySet, start })).rejects.toThrow()
  })

  it('shows what is kept, and says what is archived', async () => {
    const kept = await run<{ id: string; facts: unknown }>(
      database(),
      `select id, facts from archived_decision where id in ('${ids.first}', '${ids.denied}')`,
    )
    expect(kept).toEqual([
      {
        id: ids.first,
        facts: { category: 'transfer', amount: '1', asset: 'USDC', usdMicros: '1000000', task: 'rent' },
      },
    ])
    const known = await run(database(), `select (decision_known('${ids.first}')).operation as operation`)
    expect(known).toEqual([{ operation: 'wallets.transfer' }])
    const showing = { database: database(), settings }
    const query = { accountId, keyId: null, verdict: null, object: null, page }
    const asked = (id: string | undefined, own = accountId) =>
      showDecisions(showing, { ...query, accountId: own, id: id ?? '' })
    await expect(asked(ids.first)).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('archived with 2025-01'),
    })
    expect((await asked(ids.first, 'acct_other')).decisions).toEqual([])
    expect((await asked(ids.late)).decisions).toMatchObject([{ verified: true }])
    await refuseArchived(database(), { accountId, keyId: null, id: ids.newest ?? '', object: null })
  })

  it('exports the month after it from where the archive ends, and refuses the archived one', async () => {
    const exported = async (month: string, from: string, to: string) => {
      const out = mkdtempSync(join(directory, month))
      await writeBundle(database(), out, {
        ...{ issuer: settings.origin, key: settings.receiptKey, dataKey: settings.dataKey, now },
        ...{ period: { from: new Date(from), to: new Date(to) }, progress: () => {} },
      })
      return out
    }
    await expect(exported('a', '2025-01-01T00:00:00Z', '2025-02-01T00:00:00Z')).rejects.toThrow(
      /until the end of 2025-01 have been archived/,
    )
    await recompute(await exported('b', '2025-02-01T00:00:00Z', '2025-03-01T00:00:00Z'))
  })

  it('counts budgets as if nothing had left', async () => {
    const used = await run<{ used: bigint }>(
      database(),
      `select sum(used_micros)::bigint as used from budget_usage where key_id = '${keyId}'`,
    )
    // Four spends of January, of which two came back, and four later ones.
    expect(used).toEqual([{ used: 7_000_000n }])
    const rest = request('2027-02-02T00:00:00.000Z', {
      money: { asset: 'USDC', units: 1n },
      usdMicros: 13_000_001n,
    })
    expect(await decide(rest)).toBe('deny')
    await seal()
  })

  it('lets the next month leave with what stayed of the one before', async () => {
    const { last } = await archive('2025-02')
    // Two of January were sealed after one of March.
    expect(await listMonths()).toEqual(['2025-01: 2', '2025-03: 1', '2027-02: 2'])
    await expectIntact()
    const start = (await readArchives(database(), settings.dataKey)).map(({ first }) => first)
    expect(start).toEqual([1n, 4n])
    const [, second] = await readArchives(database(), settings.dataKey)
    const out = join(directory, '2025-02')
    const before = { sequence: 3n, hash: second?.previous ?? '' }
    const keySet = settings.receiptKey.keySet
    expect(await verifyArchive(out, { keySet, start: before, through: last })).toMatchObject({ first: 4n })
    const copy = join(directory, 'copy-2')
    cpSync(out, copy, { recursive: true })
    execFileSync(
      'gunzip',
      readdirSync(copy)
        .filter((name) => name.endsWith('.gz'))
        .map((name) => join(copy, name)),
    )
    await recompute(copy)
  })

  it('keeps other processes out until the month has left', async () => {
    const others: Promise<unknown>[] = []
    const begin = (at: string) => {
      // Only one process can open PGlite.
      if (database().engine === 'postgres' && at !== 'dropped') others.push(archive('2025-03').catch(String))
    }
    const { last } = await archive('2025-03', { step: begin, progress: begin })
    for (const other of await Promise.all(others)) expect(other).toMatch(/Another process is archiving/)
    const { previous, first } = (await readArchives(database(), settings.dataKey)).at(-1) ?? {}
    const report = await verifyArchive(join(directory, '2025-03'), {
      keySet: settings.receiptKey.keySet,
      start: { sequence: (first ?? 0n) - 1n, hash: previous ?? '' },
      through: last,
    })
    expect(report.through?.sequence).toBe(last)
  })

  it('seals on after everything before has left', async () => {
    await spend('2027-02-03T00:00:00.000Z', { usdMicros: 1n })
    await seal()
    await expectIntact()
  })

  it('lets a month leave of which every decision was sealed after a later month', async () => {
    const late: string[] = []
    for (const month of ['2025-04', '2025-05']) {
      late.push(await spend(`${month}-05T00:00:00.000Z`, { usdMicros: 1n }))
      await seal()
      const end = await readArchiveEnd(database())
      expect(await archive(month)).toMatchObject({ decisions: 0n, last: end.sequence, hash: end.hash })
      expect(await readArchiveEnd(database())).toEqual({ ...end, month })
      expect(await listMonths()).toContain(`${month}: 1`)
      const start = { sequence: end.sequence, hash: end.hash }
      const keySet = settings.receiptKey.keySet
      expect(
        await verifyArchive(join(directory, month), { keySet, start, through: end.sequence }),
      ).toMatchObject({ through: start })
      const copy = join(directory, `copy-${month}`)
      cpSync(join(directory, month), copy, { recursive: true })
      execFileSync(
        'gunzip',
        readdirSync(copy)
          .filter((name) => name.endsWith('.gz'))
          .map((name) => join(copy, name)),
      )
      await recompute(copy)
      await expectIntact()
    }
    // They leave with the month after which they were sealed.
    await spend('2028-05-01T00:00:00.000Z', { usdMicros: 1n })
    await seal()
    await archive('2027-02', { at: new Date('2028-05-10T00:00:00Z') })
    expect(await listMonths()).toEqual(['2028-05: 1'])
    const kept = await run(
      database(),
      `select id from archived_decision where id = any ('{${late.join(',')}}')`,
    )
    expect(kept).toHaveLength(2)
    await expectIntact()
  })

  it('finds decisions that were deleted and called archived', async () => {
    const last = (await readArchiveEnd(database())).sequence + 1n
    const [row] = await run<{ hash: string }>(
      database(),
      `select hash from decision_seal where sequence = ${last}`,
    )
    await run(
      database(),
      `insert into archive select '2026-01-01', last_sequence + 1, ${last}, hash, '${row?.hash}', manifest_hash, at, mac
        from archive order by month desc limit 1`,
    )
    await expect(readArchives(database(), settings.dataKey)).rejects.toThrow(
      /2026-01 was not made by this gateway/,
    )
    await tamper('archive', "delete from archive where month = '2026-01-01'")
  })

  it.skipIf(testServerUrl === undefined)('lets one process archive at a time', async () => {
    // Only one process can open that one.
    if (database().engine === 'pglite') return expect(testServerUrl).toBeDefined()
    await spend('2025-04-05T00:00:00.000Z')
    await seal()
    await database().transaction(async (other) => {
      await run(other, "select pg_advisory_xact_lock(hashtext('bursar audit'), hashtext('archive'))")
      await expect(archive('2025-04')).rejects.toThrow(/Another process is archiving/)
    })
  })
})
