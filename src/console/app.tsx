/** Finds the page of a path. */
import type { ComponentChild } from 'preact'
import { lazy, Suspense } from 'preact/compat'
import { useEffect, useRef } from 'preact/hooks'
import { Link, Route, Switch, useLocation } from 'wouter-preact'
import { Empty, SkeletonRows } from './components/messages.tsx'
import { Panel } from './components/panel.tsx'
import { Shell } from './components/shell.tsx'
import { forgetEntries } from './data/gateway.ts'
import { HomePage } from './pages/home.tsx'

type Page = () => ComponentChild

/** A page that is loaded when it is first opened. */
function later(load: () => Promise<Page>): Page {
  const Loaded = lazy(async () => ({ default: await load() }))
  return () => <Loaded />
}

const pages: readonly (readonly [path: string, page: Page])[] = [
  ['/', HomePage],
  ['/approvals', later(async () => (await import('./pages/approvals.tsx')).ApprovalsPage)],
  ['/approvals/:id', later(async () => (await import('./pages/approval.tsx')).ApprovalPage)],
  ['/agents', later(async () => (await import('./pages/agents.tsx')).AgentsPage)],
  ['/agents/new', later(async () => (await import('./pages/agent-new.tsx')).AgentNewPage)],
  ['/agents/:id', later(async () => (await import('./pages/agent.tsx')).AgentPage)],
  ['/activity', later(async () => (await import('./pages/activity.tsx')).ActivityPage)],
  ['/cards/:id?', later(async () => (await import('./pages/cards.tsx')).CardsPage)],
  ['/accounts', later(async () => (await import('./pages/accounts.tsx')).AccountsPage)],
  ['/accounts/send', later(async () => (await import('./pages/send.tsx')).SendPage)],
  ['/accounts/convert', later(async () => (await import('./pages/convert.tsx')).ConvertPage)],
  ['/security', later(async () => (await import('./pages/security.tsx')).SecurityPage)],
  ['/compliance', later(async () => (await import('./pages/compliance.tsx')).CompliancePage)],
  ['/developers', later(async () => (await import('./pages/developers.tsx')).DevelopersPage)],
  ['/operator', later(async () => (await import('./pages/operator.tsx')).OperatorPage)],
  ['/contacts', later(async () => (await import('./pages/contacts.tsx')).ContactsPage)],
  ['/people/:join?', later(async () => (await import('./pages/people.tsx')).PeoplePage)],
  ['/schedules', later(async () => (await import('./pages/schedules.tsx')).SchedulesPage)],
  ['/messages', later(async () => (await import('./pages/messages.tsx')).MessagesPage)],
  ['/invest', later(async () => (await import('./pages/invest.tsx')).InvestPage)],
]

export function App() {
  const [path] = useLocation()
  const isFirst = useRef(true)
  useEffect(() => {
    forgetEntries()
    if (isFirst.current) {
      isFirst.current = false
      return
    }
    // A new page begins at its top, and readers of the screen begin there too.
    scrollTo(0, 0)
    document.getElementById('main')?.focus({ preventScroll: true })
  }, [path])
  return (
    <Shell>
      <Suspense fallback={<Waiting />}>
        <Switch>
          {pages.map(([pattern, Page]) => (
            <Route key={pattern} path={pattern}>
              <Page />
            </Route>
          ))}
          <Route>
            <Unknown />
          </Route>
        </Switch>
      </Suspense>
    </Shell>
  )
}

function Waiting() {
  return (
    <div class="page__wait">
      <Panel>
        <SkeletonRows rows={5} />
      </Panel>
    </div>
  )
}

function Unknown() {
  return (
    <Panel>
      <Empty
        icon="search"
        title="There is no such page"
        action={
          <Link class="btn btn--primary" href="/">
            Home
          </Link>
        }
      >
        The address may be mistyped, or what it showed was removed.
      </Empty>
    </Panel>
  )
}
