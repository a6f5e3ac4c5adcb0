import { defineConfig } from 'vitest/config'

/** What `npm run mutation` judges: the tests of what decides and of what moves money, on the embedded database. */
export default defineConfig({
  test: {
    root: '.',
    include: ['test/{policies,ledger,spending}/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
