import { bundleGateway } from './bundle.ts'
import { simulate } from './simulate.ts'

const [, , seeds = '1', operations = '60'] = process.argv
const bundle = await bundleGateway([])
for (const seed of seeds.split(',').map(Number)) {
  const log = process.env.VERBOSE
    ? {
        debug() {},
        info() {},
        warn: (f: object, m: string) =>
          process.stdout.write(`W ${m} ${(f as { err?: Error }).err?.stack ?? JSON.stringify(f)}\n`),
        error: (f: object, m: string) =>
          process.stdout.write(`E ${m} ${(f as { err?: Error }).err?.stack ?? JSON.stringify(f)}\n`),
      }
    : undefined
  const result = await simulate(
    {
      seed,
      operations: Number(operations),
      bundle,
      functions: [],
      kinds: [],
      without: [],
      hasFaults: process.env.FAULTS !== '0',
    },
    {
      ...(log && { log }),
      ...(process.env.TRACE ? { onStep: (line: string) => process.stdout.write(`${line}\n`) } : {}),
    },
  )
  process.stdout.write(
    `${JSON.stringify({ ...result, perSecond: result.done / result.seconds, rss: Math.round(process.memoryUsage().rss / 1e6) })}\n`,
  )
}
process.exit(0)
