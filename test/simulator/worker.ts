/** A process that simulates one run after the other as it is told, and ends when its channel does. */
import { loadGateway, warmUp } from './load-gateway.ts'
import { type Run, simulate } from './simulate.ts'

/** @property isTold whether each step is printed. @property isLoud whether warnings of the gateways are. */
export interface Order {
  readonly run: Run
  readonly isTold: boolean
  readonly isLoud: boolean
}

const print = (kind: string) => (facts: object, message: string) => {
  const { err = facts } = facts as { err?: unknown }
  process.stdout.write(`${kind} ${message} ${err instanceof Error ? err.stack : JSON.stringify(err)}\n`)
}
const loud = { debug: () => {}, info: () => {}, warn: print('warning'), error: print('error') }
let isWarm = false

process.on('message', ({ run, isTold, isLoud }: Order) => {
  const work = async () => {
    if (!isWarm) await Promise.all([warmUp(), loadGateway(run.bundle)])
    isWarm = true
    return simulate(run, {
      ...(isLoud ? { log: loud } : {}),
      ...(isTold ? { onStep: (line: string) => process.stdout.write(`${line}\n`) } : {}),
    })
  }
  work().then(
    (result) => process.send?.({ result: { ...result, megabytes: process.memoryUsage().rss / 1e6 } }),
    (error: unknown) => process.send?.({ failure: error instanceof Error ? error.stack : String(error) }),
  )
})
process.on('disconnect', () => process.exit())
