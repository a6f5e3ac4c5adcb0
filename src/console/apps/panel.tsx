/** Parts that the views share. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Icon } from '../components/icon.tsx'
import { Untrusted } from '../components/quote.tsx'
import { capital, describeViolation } from '../words/policy.ts'
import { type Members, openPage, outcome, pageAddress } from './host.ts'
import { listBrokenRules, readText } from './members.ts'

export function View({ children }: { readonly children: ComponentChildren }) {
  return (
    <main class="panel app">
      <div class="panel__body ask">{children}</div>
    </main>
  )
}

/** A button that opens a page of the gateway; where the host opens none, its address. */
export function PageButton({
  path,
  isMain = false,
  children,
}: {
  readonly path: string
  readonly isMain?: boolean
  readonly children: ComponentChildren
}) {
  const [isRefused, setRefused] = useState(false)
  const open = async () => setRefused(!(await openPage(path)))
  return (
    <>
      <button
        type="button"
        class={isMain ? 'btn btn--primary btn--full' : 'btn btn--full'}
        onClick={() => void open()}
      >
        {children}
        <Icon name="external" small />
      </button>
      {isRefused && (
        <p class="small soft wrap" role="status">
          No page was opened here. Its address: <span class="mono">{pageAddress(path)}</span>
        </p>
      )}
    </>
  )
}

/** Nothing has come back yet, or never will. */
export function Unanswered({ doing }: { readonly doing: string }) {
  const isCanceled = outcome.value.status === 'canceled'
  return (
    <View>
      <div class="ask__says">
        {!isCanceled && <span class="app__wait" aria-hidden="true" />}
        <p role="status">{isCanceled ? 'The call was canceled' : doing}</p>
        {isCanceled && <p class="small soft">Whether anything was paid stands in Activity.</p>}
      </div>
      {isCanceled && <PageButton path="/activity">Open Activity</PageButton>}
    </View>
  )
}

/** Rules that a call breaks, in the person's words. */
export function BrokenRules({ members }: { readonly members: Members }) {
  const rules = listBrokenRules(members)
  if (rules.length === 0) return null
  return (
    <ul class="app__rules small">
      {rules.map((rule) => (
        <li class="row" key={rule.rule}>
          <Icon name="warning" small />
          <span class="wrap">
            <Untrusted>{capital(describeViolation(rule))}</Untrusted>
          </span>
        </li>
      ))}
    </ul>
  )
}

/** A call that failed: what, why, and what to do. What the gateway tells the agent is told, where no rule says it shorter. */
export function Refused({ problem, title }: { readonly problem: Members; readonly title: string }) {
  const isByRule = listBrokenRules(problem).length > 0
  const [detail, hint] = isByRule ? [null, null] : [readText(problem, 'detail'), readText(problem, 'hint')]
  return (
    <View>
      <div class="ask__says">
        <span class="glyph glyph--lg glyph--round glyph--bad" aria-hidden="true">
          <Icon name="close" />
        </span>
        <h1 class="ask__line">{title}</h1>
        {detail !== null && <p class="small wrap">{detail}</p>}
      </div>
      <BrokenRules members={problem} />
      {isByRule && <p class="small soft app__hint">The agent can ask you for exactly this payment, once.</p>}
      {hint !== null && <p class="small soft wrap app__hint">{hint}</p>}
    </View>
  )
}
