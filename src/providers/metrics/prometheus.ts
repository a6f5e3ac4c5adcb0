/**
 * Metrics in Prometheus' text format, including Node's own.
 * @see https://prometheus.io/docs/instrumenting/exposition_formats/
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Metrics, Gauge as Read } from './port.ts'

/** Methods with their own label value. */
const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Seconds: a read takes less than a millisecond, a settlement up to several seconds. */
const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Creates the metrics of this process. @param version program version, a label of `bursar_info`. */
export function createPrometheusMetrics({ version }: { version: string }): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'bursar_info',
    help: 'Version of Bursar as a label; always 1.',
    labelNames: ['version'],
    registers,
  }).set({ version }, 1)
  const requests = new Histogram({
    name: 'bursar_http_request_duration_seconds',
    help: 'HTTP requests by method, route as declared, and status.',
    labelNames: ['method', 'route', 'status'],
    buckets,
    registers,
  })
  const mcpCalls = new Histogram({
    name: 'bursar_mcp_call_duration_seconds',
    help: 'MCP tool calls by tool and outcome (ok or the code of the failure).',
    labelNames: ['tool', 'outcome'],
    buckets,
    registers,
  })
  const providerCalls = new Histogram({
    name: 'bursar_provider_call_duration_seconds',
    help: 'Calls to providers by provider, operation and outcome (ok, the code of the failure, or error).',
    labelNames: ['provider', 'operation', 'outcome'],
    buckets,
    registers,
  })
  const decisions = new Counter({
    name: 'bursar_decisions_total',
    help: 'Decisions on spends by requester (operation or card) and verdict; repeats of an earlier call are "repeated".',
    labelNames: ['path', 'verdict'],
    registers,
  })
  const violations = new Counter({
    name: 'bursar_violations_total',
    help: 'Rules violated by denied spends; one denial may violate several. For cards: the decline reason.',
    labelNames: ['path', 'rule'],
    registers,
  })
  const limited = new Counter({
    name: 'bursar_rate_limited_total',
    help: 'Requests over a rate limit, by the class of the limit.',
    labelNames: ['class'],
    registers,
  })
  return {
    request: ({ method, route, status, seconds }) =>
      requests.observe({ method: methods.has(method) ? method : 'other', route, status }, seconds),
    mcpCall: ({ tool, outcome, seconds }) => mcpCalls.observe({ tool, outcome }, seconds),
    providerCall: ({ provider, operation, outcome, seconds }) =>
      providerCalls.observe({ provider, operation, outcome }, seconds),
    decision: ({ path, verdict, rules }) => {
      decisions.inc({ path, verdict })
      for (const rule of rules) violations.inc({ path, rule })
    },
    rateLimited: (rateClass) => limited.inc({ class: rateClass }),
    expose: async (gauges) => ({
      contentType: registry.contentType,
      text: `${await registry.metrics()}\n${await renderGauges(gauges)}`,
    }),
  }
}

/** Renders gauges as just read: a value that could not be read is omitted, instead of repeating an old one. */
function renderGauges(gauges: readonly Read[]): Promise<string> {
  const registry = new Registry()
  const known = new Map<string, Gauge>()
  for (const { name, help, labels, value } of gauges) {
    const full = `bursar_${name}`
    const labelNames = Object.keys(labels)
    const gauge = known.get(full) ?? new Gauge({ name: full, help, labelNames, registers: [registry] })
    known.set(full, gauge)
    gauge.set({ ...labels }, value)
  }
  return registry.metrics()
}
