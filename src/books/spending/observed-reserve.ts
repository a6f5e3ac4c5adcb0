/** Metrics and traces of spend decisions. */
import type { Metrics } from '../../providers/metrics/port.ts'
import type { Tracing } from '../../providers/tracing/port.ts'
import type { SpendVerdict } from './reserve.ts'
import type { Reserve } from './reserve-queue.ts'

/** Wraps a reserve with metrics and traces. A verdict that repeats an earlier one is counted as `repeated`. */
export function observedReserve(
  reserve: Reserve,
  { metrics, tracing }: { metrics: Pick<Metrics, 'decision'>; tracing: Pick<Tracing, 'span' | 'note'> },
): Reserve {
  return (request) =>
    tracing.span('spend reserve', { 'bursar.operation': request.operation }, async () => {
      const decided = await reserve(request)
      const verdict = 'replayed' in decided && decided.replayed ? 'repeated' : decided.verdict
      metrics.decision({ path: 'operation', verdict, rules: listRules(decided, verdict) })
      tracing.note({ 'bursar.verdict': verdict })
      return decided
    })
}

function listRules(decided: SpendVerdict, verdict: string): readonly string[] {
  return verdict === 'deny' && decided.verdict === 'deny' ? decided.violations.map(({ rule }) => rule) : []
}
