/**
 * Traces of requests, step by step. Names and attributes come from closed sets, or are ids of requests and decisions:
 * never a secret, an account or an address. Of client input only the label of a task, which is made for it.
 */

/** Attributes of a step. */
export type Attributes = Readonly<Record<string, string | number | boolean>>

/**
 * An incoming request.
 * @property traceparent trace context of the caller, if any.
 * @see https://www.w3.org/TR/trace-context/
 */
export interface TracedRequest {
  readonly method: string
  readonly scheme: string
  readonly requestId: string
  readonly traceparent: string | undefined
  readonly tracestate: string | undefined
}

/** The answer to a request. @property route declared route, recorded instead of the path; null if none matches. */
export interface TracedAnswer {
  readonly route: string | null
  readonly status: number
}

/** The tracing port. Adapter: `opentelemetry`, if a collector is configured. */
export interface Tracing {
  /** Runs the work of a request in a new trace, or in that of its caller. @param answered called after the work. */
  request(request: TracedRequest, work: () => Promise<void>, answered: () => TracedAnswer): Promise<void>
  /** Runs a step of the current trace; outside of a trace it only runs the work. */
  span<Result>(name: string, attributes: Attributes, work: () => Result): Result
  /** Adds attributes to the current step. */
  note(attributes: Attributes): void
  /** Id of the current trace, 32 hex digits; null: none. */
  traceId(): string | null
  /** Flushes pending spans. Never throws. */
  close(): Promise<void>
}

/** Tracing port that discards everything. */
export const noTracing: Tracing = {
  request: (_request, work) => work(),
  span: (_name, _attributes, work) => work(),
  note: () => {},
  traceId: () => null,
  close: async () => {},
}
