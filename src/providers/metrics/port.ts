/**
 * Metrics of this process for operators. Labels come from closed sets only (declared routes, codes, provider names):
 * never an account, a key, an address or any other value chosen by clients.
 */

/** An answered HTTP request. @property route declared route, such as `/api/cards/:id`; never the requested path. */
export interface AnsweredRequest {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly seconds: number
}

/** A finished provider call. @property outcome `ok`, the code of a failure, or `error`. */
export interface ProviderCall {
  readonly provider: string
  readonly operation: string
  readonly outcome: string
  readonly seconds: number
}

/** A spend decision. @property path requester: an operation, or a card purchase. @property rules violated rules. */
export interface CountedDecision {
  readonly path: 'operation' | 'card'
  readonly verdict: string
  readonly rules: readonly string[]
}

/** A current value. @property name without the common prefix. */
export interface Gauge {
  readonly name: string
  readonly help: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** The metrics port. Adapter: `prometheus`. Counting never fails and takes microseconds. */
export interface Metrics {
  request(answered: AnsweredRequest): void
  /** @param tool name of an offered tool. @param outcome `ok` or the code of the failure. */
  mcpCall(call: { tool: string; outcome: string; seconds: number }): void
  decision(decision: CountedDecision): void
  providerCall(call: ProviderCall): void
  rateLimited(rateClass: string): void
  /** Renders all metrics. @param gauges current values; missing ones are omitted. */
  expose(gauges: readonly Gauge[]): Promise<{ readonly contentType: string; readonly text: string }>
}

/** Metrics port that discards everything. */
export const noMetrics: Metrics = {
  request: () => {},
  mcpCall: () => {},
  decision: () => {},
  providerCall: () => {},
  rateLimited: () => {},
  expose: async () => ({ contentType: 'text/plain', text: '' }),
}
