/** Where the agents' money went this month, and which budgets run out soon. */
import { Link } from 'wouter-preact'
import { now } from '../data/clock.ts'
import { agents, statementOfMonth } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { findShare, formatUsd } from '../words/money.ts'
import { count, namePayee } from '../words/names.ts'
import { shortText } from '../words/plain-text.ts'
import { nameCategory } from '../words/policy.ts'
import { findLowBudgets, type Part, type Spending, sumSpending } from '../words/spending.ts'
import { BudgetBurn } from './burn.tsx'
import { Failed, SkeletonRows } from './messages.tsx'
import { Panel, PanelLink } from './panel.tsx'
import { Untrusted } from './quote.tsx'

const PAYEES = 5
const COLORS = 6

/** Absent until an agent has spent something this month. */
export function SpendingPanel() {
  const source = statementOfMonth(now().toISOString().slice(0, 7))
  const state = useResource(source)
  const month = now().toLocaleDateString(undefined, { month: 'long', timeZone: 'UTC' })
  const title = `Spent by agents in ${month}`
  if (state.status === 'failed')
    return (
      <Panel title={title}>
        <Failed subject="What they spent" error={state.error} retry={source.reload} />
      </Panel>
    )
  if (state.status === 'loading')
    return (
      <Panel title={title}>
        <SkeletonRows rows={3} />
      </Panel>
    )
  const spending = sumSpending(state.value.movements)
  if (spending.payments === 0) return null
  const { unpriced } = spending
  return (
    <Panel
      title={title}
      more={<PanelLink href="/activity">All activity</PanelLink>}
      foot={
        unpriced === 0
          ? undefined
          : `Without ${count(unpriced, 'payment')} that had no rate to dollars at the time.`
      }
    >
      <div class="panel__body stack stack--loose">
        <div class="stat">
          <span class="figure">{formatUsd(spending.usd)}</span>
          <p class="small soft">{count(spending.payments, 'payment')}, less what came back</p>
        </div>
        <Categories spending={spending} />
      </div>
      <ul class="rows">
        {spending.byPayee.slice(0, PAYEES).map((part) => (
          <Payee key={part.name} part={part} whole={spending.usd} />
        ))}
      </ul>
      {spending.byPayee.length > PAYEES && (
        <p class="panel__foot">And {count(spending.byPayee.length - PAYEES, 'other payee')}</p>
      )}
    </Panel>
  )
}

function Categories({ spending: { byCategory, usd } }: { readonly spending: Spending }) {
  let at = 0
  return (
    <>
      <svg
        class="split"
        viewBox="0 0 100 8"
        preserveAspectRatio="none"
        role="img"
        aria-label={byCategory.map((part) => `${nameCategory(part.name)} ${formatUsd(part.usd)}`).join(', ')}
      >
        {byCategory.map((part, position) => {
          const width = findShare(part.usd, usd)
          const x = at
          at += width
          return <rect key={part.name} class={`d${(position % COLORS) + 1}`} x={x} width={width} height="8" />
        })}
      </svg>
      <ul class="legend legend--figures">
        {byCategory.map((part, position) => (
          <li key={part.name}>
            <span class={`swatch swatch--${(position % COLORS) + 1}`} />
            {nameCategory(part.name)}
            <b>{formatUsd(part.usd)}</b>
          </li>
        ))}
      </ul>
    </>
  )
}

function Payee({ part: { name, usd }, whole }: { readonly part: Part; readonly whole: string }) {
  return (
    <li class="item item--two">
      <span class="item__main">
        <span class="item__name trim">
          {name === '' ? 'Without a name' : <Untrusted>{shortText(namePayee(name))}</Untrusted>}
        </span>
      </span>
      <span class="item__end">
        <span class="amt">{formatUsd(usd)}</span>
        <span class="small faint num">{Math.round(findShare(usd, whole))}%</span>
      </span>
    </li>
  )
}

/** Absent while every budget of a week or longer has a quarter left. */
export function LowBudgets() {
  const low = findLowBudgets(loadedValue(useResource(agents))?.keys ?? [])
  if (low.length === 0) return null
  return (
    <Panel title="Runs out soon">
      <ul class="rows">
        {low.slice(0, PAYEES).map(({ agent, span, used, left }) => (
          <li key={agent.agentId}>
            <Link class="item item--two" href={`/agents/${agent.agentId}`}>
              <span class="item__main grow">
                <span class="item__name trim">
                  <Untrusted>{shortText(agent.name)}</Untrusted>
                </span>
                <BudgetBurn used={used} left={left} span={span} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </Panel>
  )
}
