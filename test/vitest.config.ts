import { defineConfig } from 'vitest/config'

/** What is run again with several gateways behind a balancer (TEST_GATEWAYS): what people and agents do, not what processes do. */
const balanced = [
  'journeys/{approvals,banking,cards,compliance,gasless,kyc,oauth,passkeys,signed-transfers,swaps}',
  'mcp/{eras,http,parity,sessions,x402}',
  'http/{http,limits}',
  'surface/bad-input',
]

const several = Number(process.env.TEST_GATEWAYS ?? 1) > 1

export default defineConfig({
  test: {
    root: '.',
    include: several ? balanced.map((path) => `test/${path}.test.ts`) : ['test/**/*.test.ts'],
    testTimeout: several ? 60_000 : 30_000,
    hookTimeout: several ? 120_000 : 60_000,
    maxWorkers: 2,
  },
})
