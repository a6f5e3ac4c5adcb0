/**
 * Traces to an OpenTelemetry collector over OTLP/HTTP. Loaded only if a collector is configured. Endpoint, headers,
 * time limits and sampling follow OpenTelemetry's environment variables.
 * @see https://opentelemetry.io/docs/specs/semconv/http/http-spans/
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { timers } from '../../core/base/timers.ts'
import type { Failure } from '../../core/failures/failure.ts'
import type { TracedAnswer, TracedRequest, Tracing } from './port.ts'

/** Time limit for flushing spans when the process ends. */
const FLUSH_MS = 3_000

/** @property asFailure the program's: this part is built as a bundle of its own, whose classes are not the program's. */
export interface TracingParts {
  readonly version: string
  readonly asFailure: AsFailure
}

type AsFailure = (error: unknown) => Pick<Failure, 'code' | 'status'> | null

/** Creates the traces of this process. @param version version of the program. */
export function createTracing({ version, asFailure }: TracingParts): Tracing {
  const provider = new NodeTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'bursar', 'service.version': version }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  })
  const tracer = provider.getTracer('bursar', version)
  const contexts = new AsyncLocalStorage<Context>()
  const current = (): Span | undefined => {
    const context = contexts.getStore()
    return context === undefined ? undefined : trace.getSpan(context)
  }
  return {
    async request(request, work, answered) {
      const { method, scheme, requestId } = request
      const caller = parseCaller(request)
      const attributes = {
        'http.request.method': method,
        'url.scheme': scheme,
        'bursar.request_id': requestId,
      }
      const span = tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, caller)
      try {
        await contexts.run(trace.setSpan(caller, span), work)
        tell(span, method, answered())
      } catch (error) {
        fail(span, error, asFailure)
        throw error
      } finally {
        span.end()
      }
    },
    span(name, attributes, work) {
      const outer = contexts.getStore()
      if (outer === undefined) return work()
      const span = tracer.startSpan(name, { attributes }, outer)
      return finishing(span, asFailure, () => contexts.run(trace.setSpan(outer, span), work))
    },
    note: (attributes) => void current()?.setAttributes({ ...attributes }),
    traceId: () => current()?.spanContext().traceId ?? null,
    close: async () => {
      const late = new AbortController()
      const shut = provider.shutdown().catch(() => {})
      const cancelTimeout = timers.after(FLUSH_MS, () => late.abort())
      await Promise.race([shut, new Promise((resolve) => late.signal.addEventListener('abort', resolve))])
      cancelTimeout()
    },
  }
}

/** Reads the caller's trace context, so that both sides share one trace. A malformed context starts a new trace. */
function parseCaller({ traceparent, tracestate }: TracedRequest): Context {
  const found =
    /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/.exec(
      traceparent ?? '',
    )
  if (found === null) return ROOT_CONTEXT
  const [, traceId = '', spanId = '', flags = '00'] = found
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED,
    isRemote: true,
    ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
  })
}

function tell(span: Span, method: string, { route, status }: TracedAnswer): void {
  span.setAttribute('http.response.status_code', status)
  // A path may contain a card id or arbitrary client input, so only the route is recorded.
  span.setAttribute('url.path', route ?? '/*')
  if (route !== null) span.setAttribute('http.route', route).updateName(`${method} ${route}`)
  if (status >= 500) span.setAttribute('error.type', String(status)).setStatus({ code: SpanStatusCode.ERROR })
}

/** Ends a span with its work, synchronous or asynchronous. */
function finishing<Result>(span: Span, asFailure: AsFailure, run: () => Result): Result {
  let result: Result
  try {
    result = run()
  } catch (error) {
    fail(span, error, asFailure)
    span.end()
    throw error
  }
  if (!(result instanceof Promise)) {
    span.end()
    return result
  }
  void result.then(
    () => span.end(),
    (error: unknown) => {
      fail(span, error, asFailure)
      span.end()
    },
  )
  return result
}

/** Records only the type of an error, because its message may contain client input. */
function fail(span: Span, error: unknown, asFailure: AsFailure): void {
  const failure = asFailure(error)
  const type = failure?.code ?? (error instanceof Error ? error.name : 'error')
  span.setAttribute('error.type', type)
  // A rejection is a regular answer.
  if (failure === null || failure.status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
}
