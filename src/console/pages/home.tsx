/** Home: balances, pending approvals, agents with their budgets, and the latest activity. */

import type { ComponentChildren } from 'preact'
import { Link } from 'wouter-preact'
import type { Approval } from '../../client/operations.ts'
import { AgentRow } from '../components/agent-row.tsx'
import { Amount, Figure } from '../components/amount.tsx'
import { ConnectCommands } from '../components/connect-commands.tsx'
import { Icon } from '../components/icon.tsx'
import { AgentGlyph, Chip } from '../components/marks.tsx'
import { isOneColumn } from '../components/media.ts'
import { Empty, Failed, SkeletonRows } from '../components/messages.tsx'
import { Columns, Panel, PanelLink, useTitle } from '../components/panel.tsx'
import { Untrusted } from '../components/quote.tsx'
import { LowBudgets, SpendingPanel } from '../components/spending.tsx'
import { EntryRow } from '../components/statement.tsx'
import { deployment } from '../data/account.ts'
import { now } from '../data/clock.ts'
import { agents, approvals, latestActivity, ownerCap, portfolio, wallet } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { describeCall, phraseCall } from '../words/calls.ts'
import { countAgents, groupAgents, isLiving } from '../words/delegation.ts'
import {
  addDecimals,
  compareDecimals,
  computePartWorth,
  findShare,
  formatDecimal,
  formatUsd,
  subtractDecimals,
  sumWorth,
} from '../words/money.ts'
import { nameChain, shortAddress } from '../words/names.ts'
import { shortText } from '../words/plain-text.ts'
import { formatLeft, formatWhen } from '../words/time.ts'

export function HomePage() {
  useTitle('Home')
  return (
    <Columns
      main={
        <>
          <h1 class="hide">Home</h1>
          <Worth />
          {isOneColumn.value && <WaitingPanel />}
          <FirstRun />
          <AgentsPanel />
          <SpendingPanel />
          <ActivityPanel />
        </>
      }
      side={
        <>
          {!isOneColumn.value && <WaitingPanel />}
          <LowBudgets />
          <Balances />
        </>
      }
    />
  )
}

/** Everything in USD. Absent until both parts are known: half a sum would be wrong. */
function Worth() {
  const walletState = useResource(wallet)
  const portfolioState = useResource(portfolio)
  const [mine, invested] = [loadedValue(walletState), loadedValue(portfolioState)]
  if (walletState.status === 'failed')
    return (
      <Panel>
        <Failed subject="The balance" error={walletState.error} retry={wallet.reload} />
      </Panel>
    )
  if (mine === undefined || (invested === undefined && portfolioState.status === 'loading'))
    return (
      <section class="panel" aria-busy="true">
        <div class="panel__body stack">
          <span class="bone bone--w2" />
          <span class="bone bone--fig" />
        </div>
      </section>
    )
  const { usd: onChain, unpriced } = sumWorth([
    ...mine.balances.map(({ token, amount, held, usd }) => ({
      asset: token,
      amount: addDecimals(amount, held),
      usd,
    })),
    ...mine.purse,
    ...mine.escrow,
  ])
  const held = addDecimals(
    '0',
    ...mine.balances.map(({ usd, amount, held }) =>
      computePartWorth(usd ?? '0', held, addDecimals(amount, held)),
    ),
    ...mine.escrow.map(({ usd }) => usd ?? '0'),
  )
  const shares = addDecimals('0', ...(invested?.holdings ?? []).map(({ marketValue }) => marketValue))
  const cash = invested?.cash ?? '0'
  const available = addDecimals(subtractDecimals(onChain, held), cash)
  const all = addDecimals(onChain, cash, shares)
  const [left, waits] = [findShare(available, all), findShare(held, all)]
  return (
    <section class="panel" aria-labelledby="worth">
      <div class="panel__body stack stack--loose">
        <div class="row row--wide row--wrap">
          <div class="stat">
            <h2 class="stat__name" id="worth">
              Everything you have
            </h2>
            <Figure usd={all} />
            {unpriced.length > 0 && (
              <p class="small soft">
                And {unpriced.map(({ amount, asset }) => `${formatDecimal(amount)} ${asset}`).join(', ')}:
                there is no rate to dollars right now.
              </p>
            )}
          </div>
          <div class="pagehead__actions">
            <Link class="btn" href="/accounts">
              <Icon name="in" small />
              Receive
            </Link>
            <Link class="btn" href="/accounts/send">
              <Icon name="send" small />
              Send
            </Link>
            <Link class="btn" href="/accounts/convert">
              <Icon name="retry" small />
              Convert
            </Link>
          </div>
        </div>
        <svg
          class="split"
          viewBox="0 0 100 8"
          preserveAspectRatio="none"
          role="img"
          aria-label={`${formatUsd(available)} available, ${formatUsd(held)} held, ${formatUsd(shares)} invested`}
        >
          <rect class="dleft" width={left} height="8" />
          <rect class="dheld" x={left} width={waits} height="8" />
          <rect class="d2" x={left + waits} width={findShare(shares, all)} height="8" />
        </svg>
        <ul class="legend legend--figures">
          <Part swatch="left" name="Available" usd={available} />
          <Part swatch="held" name="Held" usd={held} />
          <Part swatch="2" name="Invested" usd={shares} />
        </ul>
      </div>
    </section>
  )
}

function Part({
  swatch,
  name,
  usd,
}: {
  readonly swatch: string
  readonly name: string
  readonly usd: string
}) {
  return (
    <li>
      <span class={`swatch swatch--${swatch}`} />
      {name}
      <b>{formatUsd(usd)}</b>
    </li>
  )
}

/** The way to the first payment, until an agent has paid. */
function FirstRun() {
  const state = useResource(agents)
  const keys = loadedValue(state)?.keys
  const mine = loadedValue(useResource(wallet))
  if (keys === undefined || mine === undefined || keys.some(({ usage }) => usage.month.count > 0)) return null
  const hasMoney = mine.balances.some(({ amount }) => compareDecimals(amount, '0') > 0)
  const hasAgent = keys.some(({ status }) => status !== 'revoked')
  return (
    <Panel title="Let an agent pay">
      <ol class="checklist">
        <Step number={1} isDone={hasMoney} title={hasMoney ? 'There is money to try with' : 'Add money'}>
          {hasMoney
            ? 'Sandbox money looks and moves like money and is worth nothing.'
            : 'Press “Add money” at the top.'}
        </Step>
        <Step number={2} isDone={hasAgent} title="Connect an agent">
          {hasAgent ? 'An agent is connected.' : <ConnectCommands />}
        </Step>
        <Step number={3} isDone={false} title="Watch it pay">
          Ask it to send 1 USDC. The payment shows here within a second, or waits here for your yes.
        </Step>
      </ol>
    </Panel>
  )
}

function Step({
  number,
  isDone,
  title,
  children,
}: {
  readonly number: number
  readonly isDone: boolean
  readonly title: string
  readonly children: ComponentChildren
}) {
  return (
    <li>
      <span class={`checklist__n${isDone ? ' checklist__n--done' : ''}`}>
        {isDone ? <Icon name="check" small /> : number}
        {isDone && <span class="hide">Done: </span>}
      </span>
      <div class="stack stack--tight">
        <h3>{title}</h3>
        <div class="small soft">{children}</div>
      </div>
    </li>
  )
}

function AgentsPanel() {
  const state = useResource(agents)
  const cap = loadedValue(useResource(ownerCap))
  if (state.status === 'failed')
    return (
      <Panel title="Agents">
        <Failed subject="The list of agents" error={state.error} retry={agents.reload} />
      </Panel>
    )
  if (state.status === 'loading')
    return (
      <Panel title="Agents">
        <SkeletonRows />
      </Panel>
    )
  const living = state.value.keys.filter(
    (key) => key.status !== 'revoked' && (key.path.length === 0 || isLiving(key, now())),
  )
  const shown = groupAgents(living)
  const foot =
    cap?.remaining == null
      ? undefined
      : `All agents together: ${formatUsd(cap.remaining)} of ${formatUsd(cap.dailyBudget?.max ?? '0')} left today. The day starts at 00:00 UTC, ${formatWhen(cap.resetsAt, new Date(cap.resetsAt))} for you.`
  return (
    <Panel title="Agents" more={<PanelLink href="/agents/new">New agent</PanelLink>} foot={foot}>
      {shown.length === 0 ? (
        <Empty
          icon="agent"
          title="No agent yet"
          action={
            <Link class="btn btn--primary" href="/agents/new">
              New agent
            </Link>
          }
        >
          An agent gets its own key, budget and rules. You can stop it at any second.
        </Empty>
      ) : (
        <ul class="rows">
          {shown.slice(0, 5).map(({ agent, children }) => (
            <AgentRow key={agent.agentId} agent={agent} below={countAgents(children)} />
          ))}
        </ul>
      )}
    </Panel>
  )
}

function ActivityPanel() {
  const state = useResource(latestActivity)
  return (
    <Panel title="Latest" more={<PanelLink href="/activity">All activity</PanelLink>}>
      {state.status === 'loading' && <SkeletonRows rows={5} />}
      {state.status === 'failed' && (
        <Failed subject="The statement" error={state.error} retry={latestActivity.reload} />
      )}
      {state.status === 'ready' &&
        (state.value.entries.length === 0 ? (
          <Empty icon="activity" title="Nothing has moved yet">
            Deposits, payments and purchases show here as they happen.
          </Empty>
        ) : (
          <ul class="rows">
            {state.value.entries.map((entry) => (
              <EntryRow key={entry.id} entry={entry} />
            ))}
          </ul>
        ))}
    </Panel>
  )
}

function WaitingPanel() {
  const pending =
    loadedValue(useResource(approvals))?.approvals.filter(({ status }) => status === 'pending') ?? []
  if (pending.length === 0) return null
  const title = pending.length === 1 ? '1 waits for you' : `${pending.length} wait for you`
  return (
    <Panel kind="ask" title={title} more={<PanelLink href="/approvals">See all</PanelLink>}>
      <ul class="rows">
        {pending.slice(0, 3).map((approval, position) => (
          <WaitingItem key={approval.approvalId} approval={approval} isFirst={position === 0} />
        ))}
      </ul>
    </Panel>
  )
}

function WaitingItem({ approval, isFirst }: { readonly approval: Approval; readonly isFirst: boolean }) {
  const facts = describeCall(approval.operation, approval.input)
  const agent = loadedValue(agents.state.value)?.keys.find(({ agentId }) => agentId === approval.agentId)
  const name = shortText(agent?.name ?? (approval.agentId === null ? 'A person' : 'An agent'))
  const phrase = phraseCall(facts, formatDecimal)
  return (
    <li class="panel__body stack">
      <div class="row">
        <AgentGlyph id={approval.agentId ?? approval.personId ?? ''} name={name} size="sm" />
        <span class="trim small grow">
          <Untrusted>{name}</Untrusted>
        </span>
        <span class="small faint num">{formatLeft(approval.expiresAt, now())}</span>
      </div>
      <p class="wrap">
        <span class="strong">{phrase.charAt(0).toUpperCase() + phrase.slice(1)}</span> {facts.preposition}{' '}
        {facts.party !== null && <Untrusted>{shortText(shortAddress(facts.party))}</Untrusted>}
      </p>
      {approval.violations.length > 0 && (
        <div class="row row--wrap">
          <Chip kind="bad" icon="warning">
            Above its limits
          </Chip>
        </div>
      )}
      <Link
        class={`btn btn--full${isFirst ? ' btn--primary' : ''}`}
        href={`/approvals/${approval.approvalId}`}
        aria-label={`Review: ${phrase}`}
      >
        Review
      </Link>
    </li>
  )
}

function Balances() {
  const state = useResource(wallet)
  const cash = loadedValue(useResource(portfolio))?.cash
  if (state.status === 'failed') return null
  return (
    <Panel title="Balances" more={<PanelLink href="/accounts">Accounts</PanelLink>}>
      {state.status === 'loading' ? (
        <SkeletonRows rows={4} />
      ) : (
        <ul class="rows">
          {state.value.balances.map(({ token, amount, held, usd, chain }) => (
            <li class="item item--two" key={`${token} ${chain}`}>
              <span class="item__main">
                <span class="item__name">{token}</span>
                {chain !== deployment.chain && <span class="item__sub">{nameChain(chain)}</span>}
                {compareDecimals(held, '0') > 0 && (
                  <span class="item__sub num">{formatDecimal(held)} held</span>
                )}
              </span>
              <span class="item__end">
                <Amount amount={amount} />
                {usd !== null && <span class="small faint num">{formatUsd(usd)}</span>}
              </span>
            </li>
          ))}
          {cash !== undefined && (
            <li class="item item--two">
              <span class="item__main">
                <span class="item__name">USD cash</span>
              </span>
              <span class="item__end">
                <Amount amount={cash} />
                <span class="small faint num">{formatUsd(cash)}</span>
              </span>
            </li>
          )}
        </ul>
      )}
    </Panel>
  )
}
