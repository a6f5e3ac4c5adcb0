/**
 * Traces: what a request made happen, step by step. Names and attributes are of closed sets, or ids of requests and decisions:
 * never a secret, an account, an address or what somebody has sent.
 */

/** What a step is known by. */
export type Attributes = Readonly<Record<string, string | number | boolean>>

/** A request as it came. @property traceparent of its caller, if it is traced there. @see https://www.w3.org/TR/trace-context/ */
export interface TracedRequest {
  readonly method: string
  readonly scheme: string
  readonly requestId: string
  readonly traceparent: string | undefined
  readonly tracestate: string | undefined
}

/** How it was answered. @property route as it is declared, which is all that is told of a path; null: none fits. */
export interface TracedAnswer {
  readonly route: string | null
  readonly status: number
}

/** The tracing port. Adapter: `opentelemetry`, where a collector is configured. */
export interface Tracing {
  /** Runs the work of a request, in a trace of its own or its caller's. @param answered asked once the work has ended. */
  request(request: TracedRequest, work: () => Promise<void>, answered: () => TracedAnswer): Promise<void>
  /** Runs a step of what is traced at the moment; outside of any trace it only runs it. */
  span<Result>(name: string, attributes: Attributes, work: () => Result): Result
  /** Adds to the step that is under way. */
  note(attributes: Attributes): void
  /** The trace that is under way, 32 hex digits; null: none. */
  traceId(): string | null
  /** Sends what was not sent yet. Never throws. */
  close(): Promise<void>
}

/** Nobody collects traces. */
export const noTracing: Tracing = {
  request: (_request, work) => work(),
  span: (_name, _attributes, work) => work(),
  note: () => {},
  traceId: () => null,
  close: async () => {},
}
