/** One run from one seed: operations in a seeded order with faults, a rest after every {@link ROUND}, and the invariants. */
import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import type { Log } from '../../src/core/base/log.ts'
import { kinds } from './actors/all.ts'
import { mendBridge } from './actors/bridgers.ts'
import { handOver, openKeyedOwner } from './actors/keyed-owners.ts'
import { openAccount } from './actors/owners.ts'
import { expireSwipes } from './actors/processor.ts'
import { openShops } from './actors/sellers.ts'
import { invariants } from './invariants/all.ts'
import type { Kind } from './kind.ts'
import { type ChainFaults, noFaults } from './network.ts'
import { wallClock } from './realm.ts'
import { Scene } from './scene.ts'
import { seededBy } from './seeded.ts'
import { World } from './world.ts'

/** Operations between two rests. */
const ROUND = 100
const LANES = 8
const GATEWAYS = 3
const ACCOUNTS = 4
const KEYED_OWNERS = 2
/** A rest ends when nothing is open; an hour is long enough for everything that expires. */
const MAX_REST_MS = 3_600_000
const faults: ChainFaults = {
  lostBefore: 0.02,
  lostAfter: 0.02,
  pending: 0.3,
  dropped: 0.2,
  hidden: 0.3,
  late: 0.1,
}

export interface Run {
  readonly seed: number
  readonly operations: number
  readonly bundle: string
  readonly functions: readonly string[]
  /** Only these kinds; empty for all. */
  readonly kinds: readonly string[]
  /** Numbers of operations that are left out. */
  readonly without: readonly number[]
  /** Instead of what the seed plans: a history that was kept. */
  readonly plan?: readonly PlannedName[]
  readonly hasFaults: boolean
}

/** @property found what broke a promise; empty if nothing did. @property trace hash of all steps. @property books hash of what is booked. */
export interface Result {
  readonly seed: number
  readonly found: readonly string[]
  readonly done: number
  readonly seconds: number
  readonly steps: number
  readonly hours: number
  readonly crashes: number
  readonly reorganizations: number
  readonly trace: string
  readonly books: string
  /** By kind: how many had an effect, and how many there were. */
  readonly counts: Readonly<Record<string, readonly [number, number]>>
}

export async function simulate(
  run: Run,
  { log, onStep }: { log?: Log; onStep?: (line: string) => void } = {},
): Promise<Result> {
  const { seed } = run
  const startedAt = wallClock()
  const world = await World.open({ ...run, gateways: GATEWAYS, ...(log && { log }) })
  const { scheduler } = world
  if (onStep !== undefined) scheduler.onStep = onStep
  const scene = new Scene(world)
  const counts: Record<string, [number, number]> = {}
  const plan = planOperations(run)
  const running = new Set<string>()
  let done = 0
  try {
    await scheduler.until(prepare(scene, seed))
    while (done < plan.length && scene.found.length === 0) {
      const end = Math.min(plan.length, done + ROUND)
      if (run.hasFaults) world.faults = faults
      const lane = async () => {
        while (done < end) {
          const operation = plan[done]
          done += 1
          if (operation === undefined) return
          const { kind, number } = operation
          const random = seededBy(`operation ${seed} ${number}`)
          running.add(`${number} ${kind.name}`)
          const isDone = await kind.run(scene, random)
          running.delete(`${number} ${kind.name}`)
          const [effects = 0, all = 0] = counts[kind.name] ?? []
          counts[kind.name] = [effects + (isDone ? 1 : 0), all + 1]
          scheduler.note(`${kind.name} ${isDone}`)
          await scene.pause(random.below(500))
        }
      }
      await scheduler.until(Promise.all(Array.from({ length: LANES }, lane)))
      world.faults = noFaults
      await scheduler.until(mendBridge(scene, seededBy(`bridge ${seed} ${done}`)))
      await scheduler.until(expireSwipes(scene, seededBy(`rest ${seed} ${done}`)))
      await rest(scene)
      for (const { sentence, check } of invariants)
        for (const line of await check(scene)) scene.found.push(`${sentence} – ${line}`)
      for (const defect of world.defects) scene.found.push(`No call meets a defect. – ${defect}`)
      scheduler.note(`rest ${scene.found.length}`)
    }
  } catch (error) {
    const text = error instanceof Error ? error.stack : error
    scene.found.push(`The simulation goes on. – ${[...running].join(', ')}: ${text}`)
  }
  const books = await hashBooks(scene)
  const result = {
    seed,
    found: scene.found,
    done,
    seconds: (wallClock() - startedAt) / 1_000,
    steps: scheduler.steps,
    hours: scheduler.hours,
    crashes: world.crashes,
    reorganizations: world.networks.reduce((sum, { reorganizations }) => sum + reorganizations, 0),
    trace: scheduler.trace,
    books,
    counts,
  }
  await world.close()
  return result
}

export interface PlannedName {
  readonly number: number
  readonly kind: string
}

interface Planned {
  readonly number: number
  readonly kind: Kind
}

/** Each operation's kind depends on the seed and its number alone, so that others can be left out. */
export function planOperations({
  seed,
  operations,
  kinds: only,
  without,
  hasFaults,
  plan,
}: Run): readonly Planned[] {
  if (plan !== undefined)
    return plan
      .filter(({ number }) => !without.includes(number))
      .map(({ number, kind: name }) => {
        const kind = kinds.find((one) => one.name === name)
        if (kind === undefined) throw new Error(`no kind of operation is named "${name}"`)
        return { number, kind }
      })
  const random = seededBy(`plan ${seed}`)
  // Each seed leaves some faults out: a crash hides what only a long life shows.
  const chosen = kinds.filter(({ isFault }) => isFault !== true || random.chance(0.6))
  const wanted = only.length === 0 ? chosen : kinds.filter(({ name }) => only.includes(name))
  const deck = wanted.flatMap((kind) => Array.from({ length: kind.weight }, () => kind))
  return Array.from({ length: operations }, (_, number) => ({ number, kind: random.oneOf(deck) })).filter(
    ({ number, kind }) => !without.includes(number) && (hasFaults || kind.isFault !== true),
  )
}

async function prepare(scene: Scene, seed: number): Promise<void> {
  const random = seededBy(`people ${seed}`)
  openShops(scene)
  await scene.world.allRun()
  const credentials = await scene.call(random, 'GET', '/sandbox/credentials')
  if (credentials === undefined) throw new Error('the sandbox has no credentials')
  scene.readCredentials(credentials)
  for (let count = 0; count < ACCOUNTS; count += 1) await openAccount(scene, random)
  for (let count = 0; count < KEYED_OWNERS; count += 1) await openKeyedOwner(scene, random)
  // One wallet is its owner's from the beginning, the other is handed over in the midst, or never.
  const [first] = scene.keyedOwners
  if (first !== undefined) await handOver(scene, random, first)
}

/** Lets everything end: nothing fails any more, and what the gateways owe an end must get one. */
async function rest(scene: Scene): Promise<void> {
  const { world } = scene
  const { scheduler } = world
  await scheduler.until(world.allRun())
  const startedAt = scheduler.now
  let open: readonly string[] = ['?']
  while (open.length > 0 && scheduler.now - startedAt < MAX_REST_MS) {
    await scheduler.until(scene.pause(5_000))
    open = await listOpen(scene)
  }
  if (open.length > 0) scene.found.push(`Everything ends within an hour. – open: ${open.join(', ')}`)
  // Jobs judge each wallet twice before they book a difference.
  await scheduler.until(scene.pause(110_000))
  while (!world.database.isIdle) await scheduler.step()
}

async function listOpen({ world }: Scene): Promise<readonly string[]> {
  if (!world.database.isIdle || world.networks.some(({ isIdle }) => !isIdle)) return ['a call']
  const { rows } = await sql<Record<string, bigint>>`select
    (select count(*) from transfer where state in ('funding', 'reserved', 'submitted', 'settlement_pending')) as transfers,
    (select count(*) from payment where state in ('taking', 'pending')) as payments,
    (select count(*) from purchase where state in ('reserved', 'signed')) as purchases,
    (select count(*) from channel where status <> 'closed') as channels,
    (select count(*) from swap_order where state in ('submitted', 'bridging')) as swaps,
    (select count(*) from funding where state = 'moving') as fundings,
    (select count(*) from purse_sweep where state = 'open') as sweeps,
    (select count(*) from reservation where status = 'reserved') as reservations,
    (select count(*) from card_early) as webhooks,
    (select count(*) from chain_cursor where verify_since is not null) as verifications,
    (select count(*) from decision d where not exists (select from decision_seal s where s.decision_id = d.id))
      as unsealed`.execute(world.database.books.kysely)
  return Object.entries(rows[0] ?? {}).flatMap(([name, count]) => (count > 0n ? [`${count} ${name}`] : []))
}

const tables = ['decision', 'posting', 'transfer', 'purchase', 'payment', 'card_event', 'decision_seal']

async function hashBooks({ world }: Scene): Promise<string> {
  const hash = createHash('sha256')
  for (const table of tables) {
    const { rows } = await sql<{ text: string | null }>`
      select md5(string_agg(t::text, '|' order by t::text)) as text from ${sql.table(table)} t`.execute(
      world.database.books.kysely,
    )
    hash.update(`${table} ${rows[0]?.text}\n`)
  }
  return hash.digest('hex').slice(0, 16)
}
