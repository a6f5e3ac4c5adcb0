/** Stands in for a list that is loading or did not load. */
import type { Loaded } from '../data/resource.ts'
import { Failed, SkeletonRows } from './messages.tsx'
import { Panel } from './panel.tsx'

export function NotReady({
  state,
  subject,
  retry,
}: {
  readonly state: Loaded<unknown>
  readonly subject: string
  readonly retry: () => void
}) {
  if (state.status === 'loading')
    return (
      <Panel>
        <SkeletonRows />
      </Panel>
    )
  if (state.status === 'failed')
    return (
      <Panel>
        <Failed subject={subject} error={state.error} retry={retry} />
      </Panel>
    )
  return null
}
