/** Cost of metrics per request: `npx tsx test/bench/metrics.ts`. */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { VERSION } from '../../src/core/base/version.ts'
import { createPrometheusMetrics } from '../../src/providers/metrics/prometheus.ts'
import { observeProvider } from '../../src/providers/observe-provider.ts'
import { noTracing } from '../../src/providers/tracing/port.ts'

const ROUNDS = 200_000
const metrics = createPrometheusMetrics({ version: VERSION })
const routes = Array.from({ length: 80 }, (_, at) => `/api/room-${at}/:id`)

const provider = { ask: async () => 1 }
const watched = observeProvider(provider, 'bench', { metrics, tracing: noTracing })

/** Microseconds a call, the best of five rounds. */
async function micros(work: (at: number) => unknown): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5; round += 1) {
    const startedAt = performance.now()
    for (let at = 0; at < ROUNDS; at += 1) await work(at)
    best = Math.min(best, ((performance.now() - startedAt) * 1_000) / ROUNDS)
  }
  return best
}

const nothing = await micros(() => undefined)
const counted = await micros((at) =>
  metrics.request({ method: 'GET', route: routes[at % 80] ?? '', status: 200, seconds: 0.003 }),
)
const [bare, seen] = [await micros(() => provider.ask()), await micros(() => watched.ask())]
const response = new ServerResponse(new IncomingMessage(new Socket()))
const headers = await micros(() => {
  for (let at = 0; at < 8; at += 1) response.setHeader(`X-Header-${at}`, 'value')
})
for (const [what, figure] of [
  ['counting one HTTP request', counted - nothing],
  ['watching one provider call', seen - bare],
  ['setting eight headers', headers - nothing],
] as const)
  process.stdout.write(`${what}: ${figure.toFixed(2)} µs\n`)
