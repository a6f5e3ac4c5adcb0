import { VERSION } from '../../core/base/version.ts'
import type { Config } from '../../core/config/read-config.ts'
import { Failure } from '../../core/failures/failure.ts'
import { noTracing, type Tracing } from './port.ts'

/** Traces to a configured collector. OpenTelemetry is loaded only then. */
export async function createConfiguredTracing({ tracesTo }: Pick<Config, 'tracesTo'>): Promise<Tracing> {
  if (tracesTo === null) return noTracing
  return (await import('./opentelemetry.ts')).createTracing({
    version: VERSION,
    asFailure: (error) => (error instanceof Failure ? error : null),
  })
}
