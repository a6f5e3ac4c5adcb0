/** One object of a page that is not there: it is still loading, unknown, or did not load. */
import { Link } from 'wouter-preact'
import { isProblem } from '../data/gateway.ts'
import type { Loaded } from '../data/resource.ts'
import { Empty, Failed, SkeletonRows } from './messages.tsx'
import { Panel } from './panel.tsx'

/** @property noun such as `agent`. @property subject such as `The agent`. @property list the page of all of them */
export function MissingObject({
  state,
  noun,
  subject,
  list,
  retry,
}: {
  readonly state: Exclude<Loaded<unknown>, { readonly status: 'ready' }>
  readonly noun: string
  readonly subject: string
  readonly list: { readonly path: string; readonly name: string }
  readonly retry: () => void
}) {
  if (state.status === 'loading')
    return (
      <Panel>
        <SkeletonRows rows={4} />
      </Panel>
    )
  return (
    <Panel>
      {isProblem(state.error, 'not_found') ? (
        <Empty
          icon="search"
          title={`You have no such ${noun}`}
          action={
            <Link class="btn btn--primary" href={list.path}>
              {list.name}
            </Link>
          }
        >
          The address may be mistyped, or it is another account’s.
        </Empty>
      ) : (
        <Failed subject={subject} error={state.error} retry={retry} />
      )}
    </Panel>
  )
}
