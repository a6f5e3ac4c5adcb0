import { defineConfig } from 'vitest/config'

/**
 * What the mutation runs judge by: of what decides (MUTATED=policies) the tests of the policies alone, which are fast and need
 * nothing else; of what moves money the tests of ledger and spending on the embedded database. Of those not the long ones:
 * the courses of spending and of the books try the database's own functions, which are not mutated.
 */
const isPolicies = process.env.MUTATED === 'policies'

export default defineConfig({
  test: {
    root: '.',
    include: [isPolicies ? 'test/policies/**/*.test.ts' : 'test/{ledger,spending}/**/*.test.ts'],
    exclude: isPolicies ? [] : ['test/**/*.property.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
