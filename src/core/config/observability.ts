/** Configuration of metrics and traces. */
import { z } from 'zod'

const url = z.url({ protocol: /^https?$/, abort: true })

/**
 * The OpenTelemetry exporter reads its own variables; they are only validated here.
 * @see https://opentelemetry.io/docs/specs/otel/protocol/exporter/
 */
export const observabilityVariables = {
  METRICS_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]{16,256}$/, 'must be 16 to 256 visible ASCII characters')
    .optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: url.optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url.optional(),
  OTEL_SDK_DISABLED: z.string().optional(),
}

const variables = z.object(observabilityVariables)

export interface ObservabilityConfig {
  /** Bearer token of `/metrics`; null restricts production to loopback connections. */
  readonly metricsToken: string | null
  /** URL of the trace collector; null disables traces. */
  readonly tracesTo: string | null
}

export function readObservability(settings: z.output<typeof variables>): ObservabilityConfig {
  const to = settings.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? settings.OTEL_EXPORTER_OTLP_ENDPOINT ?? null
  return {
    metricsToken: settings.METRICS_TOKEN ?? null,
    tracesTo: settings.OTEL_SDK_DISABLED?.toLowerCase() === 'true' ? null : to,
  }
}
