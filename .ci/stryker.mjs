import { fileURLToPath } from 'node:url'

export default {
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner', fileURLToPath(new URL('stryker-texts.mjs', import.meta.url))],
  ignorers: ['descriptions'],
  vitest: { configFile: 'test/vitest.mutation.config.ts' },
  // Names no file, so that Stryker leaves tsconfig.json as it is: it would rewrite it by TypeScript's API, which TypeScript 7
  // has no more.
  tsconfigFile: 'none',
  coverageAnalysis: 'perTest',
  ignorePatterns: ['.build', '.bursar', '.git', 'README.md'],
  tempDirName: '.cache/stryker',
  concurrency: 2,
  timeoutMS: 20_000,
  reporters: ['clear-text', 'progress', 'json'],
  jsonReporter: { fileName: '.cache/mutation.json' },
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  thresholds: { high: 90, low: 85, break: 85 },
}
