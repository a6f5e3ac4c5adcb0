/** What all agents spent in a month, and the budgets that run out soon. */
import { useEffect, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { now } from '../data/clock.ts'
import { agents, ownerCap, statementById } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { formatUsd } from '../words/money.ts'
import { count } from '../words/names.ts'
import { shortText } from '../words/plain-text.ts'
import { findLowBudgets, type LowBudget, nameMonth, type Share, sumSpending } from '../words/spending.ts'
import { formatWhen } from '../words/time.ts'
import { HBars } from './charts.tsx'
import { Segments } from './controls.tsx'
import { Empty, Failed, SkeletonRows } from './messages.tsx'
import { Panel } from './panel.tsx'
import { Untrusted } from './quote.tsx'

const months = [
  ['0', 'This month'],
  ['1', 'Last month'],
] as const

/** By payee and by category; absent until there is an agent. */
export function SpendingPanel() {
  const keys = loadedValue(useResource(agents))?.keys ?? []
  return keys.length === 0 ? null : <Spent />
}

function Spent() {
  const [before, choose] = useState<'0' | '1'>('0')
  const resource = statementById(nameMonth(now(), Number(before)))
  const state = useResource(resource)
  // A statement is too much to read again after each payment.
  useEffect(() => void resource.reload(), [before])
  return (
    <Panel
      title="What agents spent"
      more={<Segments label="Month" options={months} value={before} choose={choose} />}
    >
      {state.status === 'loading' && <SkeletonRows rows={3} />}
      {state.status === 'failed' && (
        <Failed subject="What agents spent" error={state.error} retry={resource.reload} />
      )}
      {state.status === 'ready' && <Sums spending={sumSpending(state.value.movements)} />}
    </Panel>
  )
}

function Sums({ spending }: { readonly spending: ReturnType<typeof sumSpending> }) {
  const { usd, count: payments, unpriced, payees, categories } = spending
  if (payments === 0)
    return (
      <Empty icon="activity" title="Nothing yet">
        What your agents pay is summed up here, by payee and by category.
      </Empty>
    )
  return (
    <div class="panel__body stack">
      <p>
        <b class="num">{formatUsd(usd)}</b> <span class="soft">in {count(payments, 'payment')}</span>
        {unpriced > 0 && <span class="small soft">, {unpriced} of them without a rate to dollars</span>}
      </p>
      <div class="cols cols--even">
        <Bars title="By payee" shares={payees} isOneHue />
        <Bars title="By category" shares={categories} />
      </div>
    </div>
  )
}

function Bars({
  title,
  shares,
  isOneHue = false,
}: {
  readonly title: string
  readonly shares: readonly Share[]
  readonly isOneHue?: boolean
}) {
  return (
    <div class="stack stack--tight">
      <h3>{title}</h3>
      <HBars isOneHue={isOneHue} bars={shares.map(({ name, usd }) => ({ name: shortText(name), usd }))} />
    </div>
  )
}

/** Budgets that are shown. */
const SHOWN = 5

const periods: Readonly<Record<LowBudget['period'], string>> = {
  day: 'today',
  week: 'this week',
  month: 'this month',
  total: 'in all',
}

/** Budgets of which most is used up; absent while there is none. */
export function LowBudgets() {
  const keys = loadedValue(useResource(agents))?.keys ?? []
  const low = findLowBudgets(keys, loadedValue(useResource(ownerCap)))
  if (low.length === 0) return null
  return (
    <Panel title="Running out">
      <ul class="rows">
        {low.slice(0, SHOWN).map(({ agentId, name, period, left, used, resetsAt }) => (
          <li key={`${agentId} ${period}`}>
            <Link class="item item--two" href={agentId === null ? '/agents' : `/agents/${agentId}`}>
              <span class="item__main">
                <span class="item__name">
                  <span class="trim">
                    {name === null ? 'All agents' : <Untrusted>{shortText(name)}</Untrusted>}
                  </span>
                </span>
                <span class="item__sub">
                  {formatUsd(left)} left {periods[period]}
                  {resetsAt === null ? '' : `, until ${formatWhen(resetsAt)}`}
                </span>
              </span>
              <span class="item__end small faint num">{Math.floor(used)} % used</span>
            </Link>
          </li>
        ))}
      </ul>
    </Panel>
  )
}
