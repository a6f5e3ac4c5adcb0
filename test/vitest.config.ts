import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { filesOf } from './suites.ts'

/**
 * Suites that are repeated with several gateways behind a balancer (TEST_GATEWAYS): journeys of people and agents, not
 * of processes.
 */
const balanced = [
  'journeys/{approvals,banking,cards,compliance,gasless,kyc,oauth,passkeys,signed-transfers,swaps}',
  'mcp/{eras,http,parity,sessions,x402}',
  'http/{http,limits}',
  'surface/bad-input',
]

const several = Number(process.env.TEST_GATEWAYS ?? 1) > 1
const isLong = process.env.SUITE === 'long'

/**
 * The slowest files start first, so that the run does not end with them. A new checkout sorts by size, and the fuzzer is
 * short but slow; the two with long pauses run one after the other.
 */
class LongestEarly extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const named = (pattern: RegExp) => sorted.filter(({ moduleId }) => pattern.test(moduleId))
    const rest = sorted.filter(({ moduleId }) => !/interleavings-|fuzz\/fuzz/.test(moduleId))
    return [
      ...named(/interleavings-pglite|fuzz\/fuzz/),
      ...rest.slice(0, 12),
      ...named(/interleavings-postgres/),
      ...rest.slice(12),
    ]
  }
}

export default defineConfig({
  test: {
    root: '.',
    include: several ? balanced.map((path) => `test/${path}.test.ts`) : filesOf(process.env.SUITE),
    globalSetup: process.env.SUITE === 'unit' ? [] : ['test/fresh-build.ts'],
    // For hanging tests only. Files of the long suite start processes, three files at a time on two cores.
    testTimeout: several || isLong ? 90_000 : 30_000,
    hookTimeout: several || isLong ? 180_000 : 60_000,
    // Of three files of the long suite, one mostly waits: for transactions to expire, for pauses between attempts.
    maxWorkers: isLong ? 3 : 2,
    // Files of these suites share no mutable state, and a quarter of their time is loading the same modules.
    isolate: process.env.SUITE !== 'unit' && process.env.SUITE !== 'quick',
    sequence: { sequencer: LongestEarly },
  },
})
