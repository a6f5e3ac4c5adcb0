/** Metrics and traces of spend decisions. */
import { z } from 'zod'
import type { Metrics } from '../../providers/metrics/port.ts'
import type { Tracing } from '../../providers/tracing/port.ts'
import type { SpendVerdict } from './reserve.ts'
import type { Reserve } from './reserve-queue.ts'
import type { SpendRequest } from './spend-request.ts'

const labeled = z.object({ task: z.string() })

/** Wraps a reserve with metrics and traces. A verdict that repeats an earlier one is counted as `repeated`. */
export function observedReserve(
  reserve: Reserve,
  { metrics, tracing }: { metrics: Pick<Metrics, 'decision'>; tracing: Pick<Tracing, 'span' | 'note'> },
): Reserve {
  return (request) =>
    tracing.span('spend reserve', toAttributes(request), async () => {
      const decided = await reserve(request)
      const verdict = 'replayed' in decided && decided.replayed ? 'repeated' : decided.verdict
      metrics.decision({ path: 'operation', verdict, rules: listRules(decided, verdict) })
      tracing.note({ 'bursar.verdict': verdict })
      return decided
    })
}

function toAttributes({ operation, facts }: SpendRequest) {
  const { task } = labeled.safeParse(facts).data ?? {}
  return { 'bursar.operation': operation, ...(task === undefined ? {} : { 'bursar.task': task }) }
}

function listRules(decided: SpendVerdict, verdict: string): readonly string[] {
  return verdict === 'deny' && decided.verdict === 'deny' ? decided.violations.map(({ rule }) => rule) : []
}
