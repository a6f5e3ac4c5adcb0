/** One agent in a list, with what it may still spend today, and the agents below it. */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { Agent } from '../../client/operations.ts'
import { now } from '../data/clock.ts'
import { type AgentGroup, countAgents, isLiving, nameState } from '../words/delegation.ts'
import { formatUsd } from '../words/money.ts'
import { count } from '../words/names.ts'
import { shortText } from '../words/plain-text.ts'
import { capital, nameConnection } from '../words/policy.ts'
import { formatLeft } from '../words/time.ts'
import { BudgetBurn } from './burn.tsx'
import { Icon } from './icon.tsx'
import { AgentGlyph, Status } from './marks.tsx'
import { Untrusted } from './quote.tsx'

/** @property below number of agents below it that are not shown. */
export function AgentRow({ agent, below = 0 }: { readonly agent: Agent; readonly below?: number }) {
  return (
    <li>
      <AgentItem agent={agent} below={below} />
    </li>
  )
}

function AgentItem({ agent, below = 0 }: { readonly agent: Agent; readonly below?: number }) {
  const { agentId, name, path, task } = agent
  const state = nameState(agent, now())
  const isOff = state !== 'running'
  return (
    <Link class="item" href={`/agents/${agentId}`}>
      <AgentGlyph id={agentId} name={name} isOff={isOff} {...(path.length > 0 && { size: 'sm' as const })} />
      <span class="item__main">
        <span class="item__name">
          <span class="trim">
            <Untrusted>{shortText(name)}</Untrusted>
          </span>
          {isOff && <Status status={nameShownState(agent)} />}
        </span>
        <span class="item__sub trim">
          {task === null ? (
            path.length === 0 && `${nameConnection(agent.connection)} · `
          ) : (
            <>
              <Untrusted>{task}</Untrusted>
              {' · '}
            </>
          )}
          {task === null && path.length > 0 ? capital(describeUse(agent)) : describeUse(agent)}
          {below > 0 && ` · ${below} below it`}
        </span>
      </span>
      <span class="item__burn">
        <Left agent={agent} />
      </span>
    </Link>
  )
}

/** A revoked key of an owner was revoked; a delegated one has ended. */
function nameShownState(agent: Agent): string {
  const state = nameState(agent, now())
  return state === 'ended' && agent.path.length === 0 ? agent.status : state
}

function describeUse({ usage, path, expiresAt, ...agent }: Agent): string {
  if (path.length === 0)
    return usage.count === 0 ? 'paid nothing today' : `${count(usage.count, 'payment')} today`
  const paid = usage.total.count === 0 ? 'paid nothing' : count(usage.total.count, 'payment')
  if (expiresAt === null || !isLiving({ ...agent, expiresAt }, now())) return paid
  return `${paid} · ${formatLeft(expiresAt, now())}`
}

function Left({ agent }: { readonly agent: Agent }) {
  const { usage, path, setAside, status } = agent
  const isOff = status !== 'active'
  if (!isLiving(agent, now()))
    return (
      <span class="small faint num">
        {path.length === 0 ? 'Cannot spend any more' : `${formatUsd(usage.total.used)} spent`}
      </span>
    )
  if (agent.policy === null) return <span class="small faint">Sees only, spends nothing</span>
  if (usage.remaining === null) return <span class="small faint">{formatUsd(usage.used)} spent today</span>
  const { used, remaining } = usage.total
  if (path.length > 0 && remaining !== null)
    return <BudgetBurn used={used} left={remaining} aside={setAside} span="in total" isOff={isOff} />
  return <BudgetBurn used={usage.used} left={usage.remaining} aside={setAside} span="today" isOff={isOff} />
}

/** Agents below one that are shown at first. */
const SHOWN = 3

/** An agent with those below it, indented; many, and those that ended, are folded. */
export function AgentGroupRow({ group: { agent, children } }: { readonly group: AgentGroup }) {
  const [isAll, showAll] = useState(false)
  const [isPast, showPast] = useState(false)
  const at = now()
  const living = children.filter((child) => isLiving(child.agent, at))
  const past = children.filter((child) => !isLiving(child.agent, at))
  const shown = isAll ? living : living.slice(0, SHOWN)
  return (
    <li>
      <AgentItem agent={agent} />
      {children.length > 0 && (
        <ul class="below">
          {shown.map((child) => (
            <AgentGroupRow key={child.agent.agentId} group={child} />
          ))}
          {living.length > SHOWN && (
            <Fold isOpen={isAll} toggle={() => showAll(!isAll)}>
              {isAll ? 'Show fewer' : `${countAgents(living.slice(SHOWN))} more`}
            </Fold>
          )}
          {past.length > 0 && (
            <Fold isOpen={isPast} toggle={() => showPast(!isPast)}>
              {`${countAgents(past)} ended`}
            </Fold>
          )}
          {isPast && past.map((child) => <AgentGroupRow key={child.agent.agentId} group={child} />)}
        </ul>
      )}
    </li>
  )
}

function Fold({
  isOpen,
  toggle,
  children,
}: {
  readonly isOpen: boolean
  readonly toggle: () => void
  readonly children: string
}) {
  return (
    <li class="below__fold">
      <button class="linkbtn small row" type="button" aria-expanded={isOpen} onClick={toggle}>
        <Icon name={isOpen ? 'down' : 'right'} small />
        {children}
      </button>
    </li>
  )
}
