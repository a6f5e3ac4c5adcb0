import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { isSampled } from './sample.ts'

/**
 * A test's kind is in its name: `*.test.ts` starts nothing, `*.db.test.ts` opens an embedded database (and PostgreSQL
 * where TEST_DATABASE_URL names one), `*.journey.test.ts` starts processes: gateways, chains, browsers.
 */
const units = 'test/**/!(*.db|*.journey).test.ts'
const databases = 'test/**/*.db.test.ts'
const journeys = 'test/**/*.journey.test.ts'

/** Journeys that a newcomer's `npm test` runs: the first minutes of each kind of user. */
const firstJourneys = [
  'test/journeys/{approvals,banking,cards,compliance,gasless,investing,money-path,passkeys}.journey.test.ts',
  'test/journeys/{signed-transfers,swaps,x402}.journey.test.ts',
  'test/mcp/{parity,x402}.journey.test.ts',
  'test/server/http/http.journey.test.ts',
]

/** Tests without a process that take many seconds: storms of faults, and models with many random steps. */
const slow = [
  'test/mcp/watch.db.test.ts',
  'test/faults/providers.test.ts',
  'test/contracts/identity-review.test.ts',
  'test/rails/investing/{books.property,false-reports}.db.test.ts',
  'test/books/spending/{model.property,races,tree.property}.db.test.ts',
  'test/records/decisions/seal-decisions.db.test.ts',
  'test/simulator/stepped/money.db.test.ts',
]

/** Tests of what is promised within seconds, whatever fails: beside many others they would measure those. */
const timed = [
  'test/cluster/*.journey.test.ts',
  'test/faults/{*.journey,providers}.test.ts',
  'test/fuzz/fuzz.journey.test.ts',
  'test/journeys/{chaos,chromium-console-live,interleavings,killed-schedules,recourse-storm,webhook-*storm}.journey.test.ts',
  'test/rails/buying/{escrow-killed,killed,storm}.journey.test.ts',
  'test/surface/hostile-requests.journey.test.ts',
]

/**
 * Storms, kills at every step, random models and rare deployments that take minutes each, more than half of the long suite together.
 * The gate runs a quarter of them for each commit (see `sample.ts`).
 */
const longest = [
  ...[
    'books/spending/tree.property.db',
    'commands/listen.journey',
    'image/image.journey',
    'journeys/agent-registration.journey',
    'journeys/card-chains.journey',
  ],
  ...[
    'journeys/bridge-orders.journey',
    'journeys/chains-storm.journey',
    'journeys/chromium-console-delegations.journey',
  ],
  ...[
    'journeys/delegations-storm.journey',
    'journeys/durability.journey',
    'journeys/fundings.journey',
    'journeys/journal.journey',
  ],
  ...[
    'journeys/keys-in-a-cloud.journey',
    'journeys/keys-in-a-token.journey',
    'journeys/killed-payouts.journey',
  ],
  ...[
    'journeys/mainnet.journey',
    'journeys/many-gateways.journey',
    'journeys/operators.journey',
    'journeys/outflow-races.journey',
  ],
  ...[
    'journeys/production.journey',
    'journeys/purchase-fundings.journey',
    'journeys/recourse-channels.journey',
  ],
  ...[
    'journeys/recourse-escrow.journey',
    'journeys/recourse-liars.journey',
    'journeys/reorganizations.journey',
  ],
  ...['journeys/rotated-keys.journey', 'journeys/two-mainnets.journey', 'mcp/every-way.journey'],
  ...[
    'rails/buying/channels-killed.journey',
    'rails/buying/escrow.journey',
    'rails/buying/mixed-storm.journey',
  ],
  ...[
    'rails/investing/books.property.db',
    'rails/investing/false-reports.db',
    'records/decisions/recompute.journey',
  ],
  ...['records/notifications/channels.journey', 'records/statements/chaotic-month.journey'],
  ...['records/statements/jumped-months.journey', 'simulator/stepped/money.db', 'storage/pglite.journey'],
].map((name) => `test/${name}.test.ts`)
const PARTS = 4

/** Journeys of people and agents, not of processes: repeated with several gateways behind a balancer (TEST_GATEWAYS). */
const balanced = [
  'test/journeys/{approvals,banking,cards,compliance,gasless,kyc,oauth,passkeys,signed-transfers,swaps}.journey.test.ts',
  'test/mcp/{eras,http,parity,sessions,x402}.journey.test.ts',
  'test/server/http/{http,limits}.journey.test.ts',
  'test/surface/bad-input.journey.test.ts',
]

interface Suite {
  readonly include: readonly string[]
  readonly exclude: readonly string[]
}

const suites: Readonly<Record<string, Suite>> = {
  unit: { include: [units], exclude: slow },
  quick: { include: [units, databases, ...firstJourneys], exclude: slow },
  // Both together are exactly what `quick` leaves out.
  timed: { include: timed, exclude: [] },
  long: {
    include: [journeys, ...slow],
    exclude: [...firstJourneys, ...timed, ...longest.filter((_, at) => !isSampled(at, PARTS))],
  },
  all: { include: [units, databases, journeys], exclude: [] },
  balanced: { include: balanced, exclude: [] },
}

const suite = Number(process.env.TEST_GATEWAYS ?? 1) > 1 ? 'balanced' : (process.env.SUITE ?? 'all')
const { include, exclude } = suites[suite] ?? { include: [], exclude: [] }
const startsProcesses = suite !== 'unit' && suite !== 'quick'

/** For two processors. More files that start processes at a time take as long in all, and each takes several times as long. */
function countWorkers(): number {
  if (suite === 'timed') return 2
  return startsProcesses ? Number(process.env.TEST_WORKERS ?? 3) : 3
}

/**
 * The slowest files start first, so that the run does not end with them. A new checkout sorts by size, and the fuzzer is
 * short but slow.
 */
class LongestEarly extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const named = (pattern: RegExp) => sorted.filter(({ moduleId }) => pattern.test(moduleId))
    const rest = sorted.filter(({ moduleId }) => !/interleavings|fuzz\/fuzz/.test(moduleId))
    return [...named(/fuzz\/fuzz/), ...rest.slice(0, 12), ...named(/interleavings/), ...rest.slice(12)]
  }
}

export default defineConfig({
  test: {
    root: '.',
    include: [...include],
    exclude: [...exclude],
    // A test without an assertion proves nothing.
    setupFiles: ['test/expect-assertions.ts'],
    globalSetup: [
      ...(suite === 'unit'
        ? []
        : ['test/fresh-build.ts', 'test/database-template.ts', 'test/shared-gateways.ts']),
      ...(['timed', 'long', 'all'].includes(suite) ? ['test/shared-browser.ts'] : []),
    ],
    // For hanging tests only. Files of the long suite start processes, three files at a time on two cores.
    testTimeout: startsProcesses ? 120_000 : 30_000,
    hookTimeout: startsProcesses ? 180_000 : 60_000,
    maxWorkers: countWorkers(),
    // A poll ends when it is true: its end is for what never becomes true.
    expect: { poll: { timeout: startsProcesses ? 30_000 : 15_000 } },
    // Files of these suites share no mutable state, and a quarter of their time is loading the same modules.
    isolate: false,
    execArgv: ['--wasm-tiering-budget=100000000', '--wasm-lazy-validation'],
    sequence: { sequencer: LongestEarly },
  },
})
