/**
 * Steps sessions of a real PostgreSQL: one runs at a time, from pause to pause, and a seed chooses which. A session that waits
 * for a lock of another is seen in pg_locks and left alone until it has it. Invariant: equal seeds give equal traces.
 */
import { setImmediate as turn } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import pg from 'pg'
import type { Connection, Database } from '../../../src/storage/database.ts'
import { openPostgres } from '../../../src/storage/postgres.ts'
import type { Schema } from '../../../src/storage/schema.ts'
import type { TestDatabase } from '../../engines.ts'
import type { Seeded } from '../seeded.ts'
import {
  type Edit,
  firstPause,
  installPauses,
  PAUSE_CLASS,
  type Pauses,
  PLACE_CLASS,
  sessionName,
} from './pauses.ts'

const SESSIONS = 3
/** Of each session: a task may read beside its own transaction. */
const CONNECTIONS = 2
/** How probably the session that ran goes on: a seed draws one, so that long and short stretches both occur. */
const STICKINESS = [0, 0.5, 0.8, 0.95] as const
/** A session that waits for an outsider, such as the autovacuum, is not in a deadlock: it is looked at again. */
const DEADLOCK_LOOKS = 20
/** A run that never settles is a defect of the conductor. */
const SETTLE_MS = 60_000

/** Work of one session. A rejection violates every scene. */
export type Task = (database: Database) => Promise<unknown>

/** @property trace each step as `session function:line`, until one session was left. */
export interface Run {
  readonly trace: readonly string[]
  readonly answers: readonly PromiseSettledResult<unknown>[]
  readonly isDeadlocked: boolean
}

export interface Conductor {
  /** Not stepped: for the setup of a scene and its invariant. */
  readonly database: Database
  /** Runs tasks until all have ended. */
  run(tasks: readonly Task[], seeded: Seeded): Promise<Run>
  /** Deletes every row that a run has written. */
  reset(): Promise<void>
  /** @see Pauses.edit */
  edit(edits: readonly Edit[]): Promise<() => Promise<void>>
  close(): Promise<void>
}

/** @property isRow it waits for a row, or for a key of an index. @property blockers sessions that have what it waits for. */
type State =
  | { readonly kind: 'paused'; readonly lock: number; readonly place: number }
  | { readonly kind: 'blocked'; readonly isRow: boolean; readonly blockers: readonly number[] }
  | { readonly kind: 'running' | 'over' }

/** A session that waits for a lock. @property lock and place only at a pause; otherwise blockers are the names of sessions. */
interface Waiting {
  readonly name: string
  readonly type: string
  readonly lock: number | null
  readonly place: number | null
  readonly blockers: readonly string[]
}

/** Opens a conductor on a migrated database of its own. */
export async function openConductor({ url, name }: Pick<TestDatabase, 'url' | 'name'>): Promise<Conductor> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  // The conductor finds deadlocks; the server would resolve them after a second, and at another step each time.
  for (const setting of [`deadlock_timeout = '1h'`, 'synchronous_commit = off'])
    await client.query(`alter database ${name} set ${setting}`)
  const emptyTables = await listEmptyTables(client)
  const pauses = await installPauses(client, SESSIONS)
  const database = await openPostgres({ url, poolSize: 2 })
  const sessions = await Promise.all(
    Array.from({ length: SESSIONS }, (_, session) =>
      openPostgres({ url: urlOf(url, session), poolSize: CONNECTIONS }),
    ),
  )
  return {
    database,
    run: (tasks, seeded) => conduct({ client, pauses, sessions }, tasks, seeded),
    reset: async () => {
      const { rows } = await client.query<{ name: string }>(
        'select name from unnest($1::text[]) as name where pg_relation_size(name::regclass) > 0',
        [emptyTables],
      )
      const deletes = rows.map((table) => `delete from ${table.name};`).join('')
      // Without foreign keys and triggers.
      await client.query(`begin; set local session_replication_role = replica; ${deletes} commit`)
    },
    edit: pauses.edit,
    close: async () => {
      await Promise.all([database, ...sessions].map((each) => each.close()))
      await client.end()
    },
  }
}

/** A session waits for as long as the others take, so nothing is timed but the whole. */
function urlOf(url: string, session: number): string {
  const stepped = new URL(url)
  stepped.searchParams.set('application_name', sessionName(session))
  for (const limit of ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout'])
    stepped.searchParams.set(limit, '0')
  stepped.searchParams.set('query_timeout', String(SETTLE_MS))
  return stepped.href
}

async function listEmptyTables(client: pg.Client): Promise<readonly string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select oid::regclass::text as name from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace and pg_relation_size(oid) = 0`,
  )
  return rows.map(({ name }) => name)
}

async function conduct(
  {
    client,
    pauses,
    sessions,
  }: { client: pg.Client; pauses: Pick<Pauses, 'nameOf'>; sessions: readonly Database[] },
  tasks: readonly Task[],
  seeded: Seeded,
): Promise<Run> {
  const over = new Set<number>()
  const answers: Promise<PromiseSettledResult<unknown>>[] = []
  const trace: string[] = []
  const settle = () => settleSessions(client, { over, started: answers.length })
  let isDeadlocked: boolean
  await holdFirstPauses(client, tasks.length)
  try {
    for (const [session, task] of tasks.entries()) {
      const database = sessions[session]
      if (database === undefined) throw new Error(`only ${sessions.length} sessions are open`)
      answers.push(startTask(database, task).finally(() => over.add(session)))
      // One after the other: sessions that start at once would take their first locks in any order.
      await settle()
    }
    isDeadlocked = await step(client, settle, seeded, ({ session, place }) =>
      trace.push(`${session} ${pauses.nameOf(place)}`),
    )
  } finally {
    // The session that is left has no other to interleave with.
    await client.query('select pg_advisory_unlock_all()')
  }
  const ended = { trace, answers: await Promise.all(answers), isDeadlocked }
  // A cancellation that reaches a session as its pause ends leaves it that pause's lock, for which the next run would wait.
  if (isDeadlocked) await Promise.all(sessions.map(unlockAll))
  return ended
}

/** Steps sessions until at most one is left. @returns whether they waited for each other in a circle. */
async function step(
  client: pg.Client,
  settle: () => Promise<readonly State[]>,
  seeded: Seeded,
  record: (step: { readonly session: number; readonly place: number }) => void,
): Promise<boolean> {
  const stickiness = seeded.oneOf(STICKINESS)
  let last = -1
  for (;;) {
    const states = await settle()
    const left = states.filter(({ kind }) => kind !== 'over')
    const ready = findReady(states)
    if (left.length === 0 || (left.length === 1 && ready.length === 1)) return false
    if (ready.length === 0) {
      if (await cancelDeadlocked(client, settle)) return true
      continue
    }
    const same = ready.find(({ session }) => session === last)
    const next = same !== undefined && seeded.chance(stickiness) ? same : seeded.oneOf(ready)
    last = next.session
    record(next)
    // The next pause is held before this one ends.
    await client.query('select pg_advisory_lock($1, $3), pg_advisory_unlock($1, $2)', [
      PAUSE_CLASS,
      next.lock,
      next.lock + 1,
    ])
  }
}

/**
 * Finds the sessions that may go on. While one waits for a row, only those may whose end it waits for: the server wakes two that
 * wait for one row in no certain order. Until then the blocked statement has changed nothing.
 */
function findReady(states: readonly State[]) {
  const paused = states.flatMap((state, session) => (state.kind === 'paused' ? [{ ...state, session }] : []))
  const isAwaited = new Set(
    states.flatMap((state) => (state.kind === 'blocked' && state.isRow ? state.blockers : [])),
  )
  for (const session of isAwaited) {
    const state = states[session]
    if (state?.kind === 'blocked') for (const blocker of state.blockers) isAwaited.add(blocker)
  }
  const awaited = paused.filter(({ session }) => isAwaited.has(session))
  return awaited.length > 0 ? awaited : paused
}

async function startTask(database: Database, task: Task): Promise<PromiseSettledResult<unknown>> {
  try {
    await pause(database)
    return { status: 'fulfilled', value: await task(pauseBetweenStatements(database)) }
  } catch (reason) {
    return { status: 'rejected', reason }
  }
}

async function holdFirstPauses(client: pg.Client, count: number): Promise<void> {
  await client.query(
    `select setval(name::regclass, 1, false), pg_advisory_lock($1, first + 1)
    from unnest($2::text[], $3::int[]) as session (name, first)`,
    [
      PAUSE_CLASS,
      Array.from({ length: count }, (_, session) => sessionName(session)),
      Array.from({ length: count }, (_, session) => firstPause(session)),
    ],
  )
}

/** Waits until no session runs: each is at a pause, waits for a lock of another, or is over. */
async function settleSessions(
  client: pg.Client,
  { over, started }: { over: ReadonlySet<number>; started: number },
): Promise<readonly State[]> {
  const until = performance.now() + SETTLE_MS
  for (;;) {
    // Read before the locks: a task that is over has already released its own.
    const ended = new Set(over)
    const waiting = await readWaiting(client)
    const states = Array.from({ length: started }, (_, session): State => {
      if (ended.has(session)) return { kind: 'over' }
      const found = waiting.find(({ name }) => name === sessionName(session))
      if (found === undefined) return { kind: 'running' }
      const { type, lock, place, blockers } = found
      if (lock !== null && place !== null) return { kind: 'paused', lock, place }
      const isRow = type === 'transactionid' || type === 'tuple'
      return { kind: 'blocked', isRow, blockers: blockers.map((name) => Number(name.at(-1))) }
    })
    if (states.every(({ kind }) => kind !== 'running')) return states
    if (performance.now() > until) throw new Error(`the sessions do not settle: ${JSON.stringify(states)}`)
    await turn()
  }
}

/** Sessions that wait for a lock, and the place of those that are at a pause. */
async function readWaiting(client: pg.Client): Promise<readonly Waiting[]> {
  const { rows } = await client.query<Waiting>({
    name: 'waiting',
    text: `with locks as materialized (select * from pg_locks),
      sessions as materialized (
        select pid, application_name as name from pg_stat_activity
        where datname = current_database() and application_name like 'stepped%'
      )
      select s.name, w.locktype as type, p.objid as place, case when p.pid is not null then w.objid end as lock,
        case when p.pid is null then array(select b.name from sessions b where b.pid = any (pg_blocking_pids(s.pid)))
          else '{}' end as blockers
      from sessions s
      join locks w on w.pid = s.pid and not w.granted
      left join locks p on w.locktype = 'advisory' and w.classid = ${PAUSE_CLASS}
        and p.pid = s.pid and p.granted and p.locktype = 'advisory' and p.classid = ${PLACE_CLASS}`,
  })
  return rows
}

/** Cancels sessions that wait for each other in a circle. @returns false if one of them goes on by itself. */
async function cancelDeadlocked(
  client: pg.Client,
  settle: () => Promise<readonly State[]>,
): Promise<boolean> {
  for (let look = 0; look < DEADLOCK_LOOKS; look += 1) {
    const states = await settle()
    if (states.some(({ kind }) => kind === 'paused') || states.every(({ kind }) => kind === 'over'))
      return false
    await turn()
  }
  await client.query(
    `select pg_cancel_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name like 'stepped%' and wait_event_type = 'Lock'`,
  )
  return true
}

/** On each connection: calls at once are on different ones. */
async function unlockAll(session: Database): Promise<void> {
  const unlock = { name: 'stepped_unlock', text: 'select pg_advisory_unlock_all()' }
  await Promise.all(Array.from({ length: CONNECTIONS }, () => session.call(unlock, [])))
}

async function pause(connection: Pick<Connection, 'call'>): Promise<void> {
  await connection.call({ name: 'stepped_pause', text: 'select sim_pause(0) as paused' }, [])
}

/** A database whose tasks pause after each statement, also within their transactions. */
function pauseBetweenStatements(database: Database): Database {
  return {
    ...database,
    ...pauseAfterStatements(database),
    transaction: (work) => database.transaction((connection) => work(pauseAfterStatements(connection))),
  }
}

function pauseAfterStatements(connection: Connection): Connection {
  const thenPause = async <Result>(result: Promise<Result>): Promise<Result> => {
    const answer = await result
    await pause(connection)
    return answer
  }
  return {
    get kysely(): Kysely<Schema> {
      return connection.kysely.withPlugin({
        transformQuery: ({ node }) => node,
        transformResult: ({ result }) => thenPause(Promise.resolve(result)),
      })
    },
    call: (statement, parameters) => thenPause(connection.call(statement, parameters)),
    gather: (statement, element, line) => thenPause(connection.gather(statement, element, line)),
  }
}
