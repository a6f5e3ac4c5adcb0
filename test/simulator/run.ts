/**
 * `npm run simulate -- --seeds 1-200 --operations 2000`: random histories of everything that moves money, each from one seed.
 * Prints the figures of each seed; at a failure, the shortest history that it finds and the command that repeats it.
 */
import { execFileSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { setup } from '../fresh-build.ts'
import { kinds } from './actors/all.ts'
import { bundleGateway, editFunction, removeBundle } from './bundle.ts'
import { keep, readKept } from './kept.ts'
import { mutants } from './mutants/all.ts'
import { shrink } from './shrink.ts'
import { planOperations, type Run } from './simulate.ts'
import { openWorkers, type Told } from './workers.ts'

const HELP = `Usage: npm run simulate -- [options]

  --seeds 1-8           seeds, such as 7 or 1-200 or 3,9,20-30 (1-8); commit: eight from the hash of the commit
  --kept                the kept histories too, of test/simulator/seeds
  --operations 300      operations for each seed (300)
  --kinds "a,b"         only these kinds of operations
  --mutant a,b          with known defects put back, one after the other; --mutants for all
  --minutes 10          stops looking for a defect after so long (10)
  --without 3,17        leaves these operations out
  --no-faults           no crashes, lost answers or replaced blocks
  --no-shrink           does not look for a shorter history
  --workers 2           processes at a time (as many as processors)
  --trace, --verbose    prints each step, or what the gateways warn of

kinds: ${kinds.map(({ name }) => name).join(', ')}
mutants: ${mutants.map(({ name }) => name).join(', ')}
`

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1-8' },
    kept: { type: 'boolean', default: false },
    operations: { type: 'string', default: '300' },
    kinds: { type: 'string', default: '' },
    mutant: { type: 'string' },
    mutants: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '10' },
    without: { type: 'string', default: '' },
    'no-faults': { type: 'boolean', default: false },
    'no-shrink': { type: 'boolean', default: false },
    workers: { type: 'string', default: String(availableParallelism()) },
    trace: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const print = (text: string) => process.stdout.write(`${text}\n`)

const SEEDS_OF_COMMIT = 8

function readSeeds(text: string): readonly number[] {
  if (text === 'commit') {
    const hash = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' })
    return Array.from({ length: SEEDS_OF_COMMIT }, (_, at) =>
      Number.parseInt(hash.slice(4 * at, 4 * at + 4), 16),
    )
  }
  return text.split(',').flatMap((part) => {
    const [first = Number.NaN, last = first] = part.split('-').map(Number)
    if (!(first <= last)) throw new Error(`--seeds ${text} is no list such as 1-8 or 3,9,20-30`)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}

const list = (text: string) => text.split(',').filter((part) => part !== '')

function requireKnown(
  what: string,
  named: readonly string[],
  known: readonly { readonly name: string }[],
): void {
  const unknown = named.find((one) => !known.some(({ name }) => name === one))
  if (unknown !== undefined) throw new Error(`no ${what} is named "${unknown}". Try --help.`)
}

function describe({
  seed,
  found,
  done,
  seconds,
  steps,
  hours,
  crashes,
  reorganizations,
  trace,
  books,
  megabytes,
}: Told) {
  const verdict = found.length === 0 ? 'holds' : 'BROKEN'
  return `seed ${seed}: ${verdict} · ${done} operations in ${seconds.toFixed(1)} s (${(done / seconds).toFixed(1)}/s) · ${steps} steps · ${hours.toFixed(2)} h · ${crashes} crashes · ${reorganizations} reorganizations · trace ${trace} · books ${books} · ${megabytes.toFixed(0)} MB`
}

async function main(): Promise<number> {
  if (values.help) {
    print(HELP.trimEnd())
    return 0
  }
  const named = list(values.mutant ?? '')
  requireKnown('kind', list(values.kinds), kinds)
  requireKnown('mutant', named, mutants)
  const chosen = values.mutants ? mutants : mutants.filter(({ name }) => named.includes(name))
  setup()
  const workers = await openWorkers(Number(values.workers))
  try {
    if (chosen.length === 0) return await simulateSeeds(workers)
    return await findMutants(workers, chosen)
  } finally {
    workers.close()
  }
}

const how = { isTold: values.trace, isLoud: values.verbose }

function runOf(seed: number, bundle: string, functions: readonly string[]): Run {
  return {
    seed,
    operations: Number(values.operations),
    bundle,
    functions,
    kinds: list(values.kinds),
    without: list(values.without).map(Number),
    hasFaults: !values['no-faults'],
  }
}

async function simulateSeeds(workers: Awaited<ReturnType<typeof openWorkers>>): Promise<number> {
  const bundle = await bundleGateway('unchanged', [])
  let failures = 0
  const totals = { done: 0, counts: new Map<string, [number, number]>() }
  const startedAt = performance.now()
  const runs = [
    ...(values.kept ? readKept().map((kept) => ({ ...runOf(kept.seed, bundle, []), ...kept })) : []),
    ...readSeeds(values.seeds).map((seed) => runOf(seed, bundle, [])),
  ]
  await Promise.all(
    runs.map(async (run) => {
      const told = await workers.run(run, how)
      print(describe(told))
      totals.done += told.done
      for (const [name, [effects, all]] of Object.entries(told.counts)) {
        const [before = 0, allBefore = 0] = totals.counts.get(name) ?? []
        totals.counts.set(name, [before + effects, allBefore + all])
      }
      if (told.found.length === 0) return
      failures += 1
      for (const line of told.found) print(`  ${line}`)
      if (!values['no-shrink']) await printShortest(workers, run, told)
    }),
  )
  removeBundle(bundle)
  const seconds = (performance.now() - startedAt) / 1_000
  print(
    [...totals.counts]
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, [effects, all]]) => `${name} ${effects}/${all}`)
      .join(' · '),
  )
  print(
    `${totals.done} operations, ${failures} seeds broken, ${seconds.toFixed(0)} s, ${(totals.done / seconds).toFixed(1)} operations/s`,
  )
  return failures === 0 ? 0 : 1
}

async function printShortest(workers: Awaited<ReturnType<typeof openWorkers>>, run: Run, told: Told) {
  const shortest = await shrink(run, told, (one) => workers.run(one))
  const history = planOperations(shortest.run)
  print(`  shortest history found: ${history.length} operations`)
  for (const { number, kind } of history) print(`    ${number} ${kind.name}`)
  for (const line of shortest.found) print(`    ${line}`)
  const { seed, operations, without, hasFaults } = shortest.run
  print(
    `  again: npm run simulate -- --seeds ${seed} --operations ${operations}${hasFaults ? '' : ' --no-faults'}${without.length === 0 ? '' : ` --without ${without.join(',')}`}`,
  )
  const path = keep(shortest.run, shortest.found[0] ?? '')
  print(`  kept in ${path}: commit it with what mends it`)
}

/** Puts each defect back and looks for a seed that shows it. */
async function findMutants(
  workers: Awaited<ReturnType<typeof openWorkers>>,
  chosen: typeof mutants,
): Promise<number> {
  let missed = 0
  for (const { name, edits = [], functions = [], kinds: own } of chosen) {
    const startedAt = performance.now()
    const bundle = await bundleGateway(name, edits)
    const replaced = editFunction(functions)
    const limit = Number(values.minutes) * 60_000
    const seeds = [...readSeeds(values.seeds)].reverse()
    let shown: Told | undefined
    const lane = async () => {
      for (;;) {
        const seed = seeds.pop()
        if (seed === undefined || shown !== undefined || performance.now() - startedAt > limit) return
        const run = runOf(seed, bundle, replaced)
        const told = await workers.run(own === undefined ? run : { ...run, kinds: own }, how)
        if (told.found.length > 0) shown ??= told
      }
    }
    await Promise.all(Array.from({ length: Number(values.workers) }, lane))
    removeBundle(bundle)
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0)
    if (shown === undefined) {
      missed += 1
      print(`${name}: NOT FOUND in ${seconds} s`)
    } else
      print(
        `${name}: seed ${shown.seed} after ${shown.done} operations, ${seconds} s: ${shown.found[0]?.split('\n')[0]?.slice(0, 160)}`,
      )
  }
  print(`${chosen.length - missed} of ${chosen.length} defects found`)
  return missed === 0 ? 0 : 1
}

process.exitCode = await main().catch((error: unknown) => {
  process.stderr.write(`simulate: ${error instanceof Error ? error.message : error}\n`)
  return 2
})
