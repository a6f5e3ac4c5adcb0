import { defineConfig } from 'vitest/config'

/**
 * What the mutation runs judge by: of what decides (MUTATED=policies) the tests of the policies alone, which are fast and need
 * nothing else; of what moves money the tests of ledger and spending on the embedded database.
 */
const mirrored = process.env.MUTATED === 'policies' ? 'policies' : '{ledger,spending}'

export default defineConfig({
  test: {
    root: '.',
    include: [`test/${mirrored}/**/*.test.ts`],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
