/** The part of the configuration that says who may watch the gateway, and where its traces go. */
import { z } from 'zod'

const url = z.url({ protocol: /^https?$/, abort: true })

/**
 * Its variables. Those of OpenTelemetry are the exporter's own: it reads them itself, here they are only checked.
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

/** What the environment decides of being watched. */
export interface ObservabilityConfig {
  /** What `/metrics` is asked with, as a bearer token; null: in production only this machine may ask. */
  readonly metricsToken: string | null
  /** Where the collector of traces is; null: there are none. */
  readonly tracesTo: string | null
}

/** Its part of the settings. */
export function observabilityOf(settings: z.output<typeof variables>): ObservabilityConfig {
  const to = settings.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? settings.OTEL_EXPORTER_OTLP_ENDPOINT ?? null
  return {
    metricsToken: settings.METRICS_TOKEN ?? null,
    tracesTo: settings.OTEL_SDK_DISABLED?.toLowerCase() === 'true' ? null : to,
  }
}
