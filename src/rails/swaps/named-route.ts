import { Failure } from '../../core/failures/failure.ts'
import type { SwapAggregator } from '../../providers/swap-aggregator/port.ts'

/** Finds the aggregator that a quote names. @throws Failure `invalid_request`, listing them. */
export function findNamedRoute(
  {
    swapAggregators,
    namedRoutes,
  }: {
    readonly swapAggregators: readonly SwapAggregator[]
    readonly namedRoutes: readonly SwapAggregator[]
  },
  name: string,
): SwapAggregator {
  const all = [...swapAggregators, ...namedRoutes]
  const found = all.find(({ tool }) => tool === name)
  if (found !== undefined) return found
  const message = 'is not an aggregator of this deployment'
  throw new Failure('invalid_request', `route: ${message}.`, {
    issues: [{ path: 'route', message }],
    hint: `Aggregators: ${all.map(({ tool }) => tool).join(', ')}.`,
  })
}
