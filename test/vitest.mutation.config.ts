import { defineConfig } from 'vitest/config'

/**
 * Tests that judge mutants. For policies (MUTATED=policies): the policies' own tests, which are fast and
 * self-contained. For money: the ledger and spending tests on the embedded database, without the long property tests,
 * which exercise the database functions that are not mutated.
 */
const isPolicies = process.env.MUTATED === 'policies'

export default defineConfig({
  test: {
    root: '.',
    include: [isPolicies ? 'test/policies/**/*.test.ts' : 'test/books/{ledger,spending}/**/*.test.ts'],
    exclude: isPolicies ? [] : ['test/**/*.property*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
