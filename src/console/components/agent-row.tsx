/** One agent in a list, with what it may still spend today. */
import { Link } from 'wouter-preact'
import type { Agent } from '../../client/operations.ts'
import { formatUsd } from '../words/money.ts'
import { count } from '../words/names.ts'
import { shortText } from '../words/plain-text.ts'
import { nameConnection } from '../words/policy.ts'
import { BudgetBurn } from './burn.tsx'
import { AgentGlyph, Status } from './marks.tsx'
import { Untrusted } from './quote.tsx'

export function AgentRow({ agent }: { readonly agent: Agent }) {
  const { agentId, name, status, usage, connection, policy } = agent
  const isOff = status !== 'active'
  return (
    <li>
      <Link class="item" href={`/agents/${agentId}`}>
        <AgentGlyph id={agentId} name={name} isOff={isOff} />
        <span class="item__main">
          <span class="item__name">
            <span class="trim">
              <Untrusted>{shortText(name)}</Untrusted>
            </span>
            {isOff && <Status status={status} />}
          </span>
          <span class="item__sub trim">
            {nameConnection(connection)} ·{' '}
            {usage.count === 0 ? 'paid nothing today' : `${count(usage.count, 'payment')} today`}
          </span>
        </span>
        <span class="item__burn">
          {status === 'revoked' ? (
            <span class="small faint">Cannot spend any more</span>
          ) : policy === null ? (
            <span class="small faint">Sees only, spends nothing</span>
          ) : usage.remaining === null ? (
            <span class="small faint">{formatUsd(usage.used)} spent today</span>
          ) : (
            <BudgetBurn used={usage.used} left={usage.remaining} span="today" isOff={isOff} />
          )}
        </span>
      </Link>
    </li>
  )
}
