/**
 * Metrics: figures of what this process does, for whoever watches it. Labels are of closed sets alone (routes as they are
 * declared, codes, names of providers): never an account, a key, an address or anything else that somebody outside chooses.
 */

/** An HTTP request that was answered. @property route as it is declared, such as `/api/cards/:id`; never the path that was asked for. */
export interface AnsweredRequest {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly seconds: number
}

/** A call to somebody else that has ended. @property outcome `ok`, the code of a failure, or `error`. */
export interface ProviderCall {
  readonly provider: string
  readonly operation: string
  readonly outcome: string
  readonly seconds: number
}

/** A decision on a spend. @property path who asked for it: an operation, or a card's purchase. @property rules what it violates. */
export interface CountedDecision {
  readonly path: 'operation' | 'card'
  readonly verdict: string
  readonly rules: readonly string[]
}

/** What something is at the moment. @property name without the prefix that all metrics share. */
export interface Gauge {
  readonly name: string
  readonly help: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** The metrics port. Adapter: `prometheus`. Counting never fails, and takes microseconds. */
export interface Metrics {
  request(answered: AnsweredRequest): void
  /** @param tool its name, of those that are offered. @param outcome `ok` or the code of the failure. */
  mcpCall(call: { tool: string; outcome: string; seconds: number }): void
  decision(decision: CountedDecision): void
  providerCall(call: ProviderCall): void
  rateLimited(rateClass: string): void
  /** All of them as a document. @param gauges what was read for it; those that are not given are left out. */
  expose(gauges: readonly Gauge[]): Promise<{ readonly contentType: string; readonly text: string }>
}

/** Metrics that nobody reads. */
export const noMetrics: Metrics = {
  request: () => {},
  mcpCall: () => {},
  decision: () => {},
  providerCall: () => {},
  rateLimited: () => {},
  expose: async () => ({ contentType: 'text/plain', text: '' }),
}
