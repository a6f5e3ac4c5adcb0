/** The agent's remaining budgets, and the rules of its policy. */

import type { Policy } from '../../client/operations.ts'
import { BudgetBurn } from '../components/burn.tsx'
import { Chip } from '../components/marks.tsx'
import { Untrusted } from '../components/quote.tsx'
import { PolicyWords } from '../components/sentence.tsx'
import { shortText } from '../words/plain-text.ts'
import { formatWhen } from '../words/time.ts'
import { type Members, outcome } from './host.ts'
import { readRecord, readText } from './members.ts'
import { PageButton, Refused, Unanswered, View } from './panel.tsx'

const spans = [
  ['today', null],
  ['this week', 'week'],
  ['this month', 'month'],
  ['in all', 'total'],
] as const

export function BudgetView() {
  const { value } = outcome
  if (value.status === 'failed')
    return <Refused problem={value.problem} title="The budget could not be read" />
  if (value.status !== 'answered') return <Unanswered doing="Reading the budget" />
  return <Budget caller={value.answer} />
}

function Budget({ caller }: { readonly caller: Members }) {
  const usage = readRecord(caller.usage)
  const isPaused = readText(caller, 'status') === 'paused'
  const budgets = spans.flatMap(([span, member]) => {
    const of = member === null ? usage : readRecord(usage[member])
    const [used, left] = [readText(of, 'used'), readText(of, 'remaining')]
    return used === null || left === null ? [] : [{ span, used, left, resetsAt: readText(of, 'resetsAt') }]
  })
  const agentId = readText(caller, 'agentId')
  return (
    <View>
      <div class="row row--wide row--wrap">
        <h1 class="ask__line strong">
          <Untrusted>{shortText(readText(caller, 'name') ?? 'This agent')}</Untrusted>
        </h1>
        <Chip kind={isPaused ? 'bad' : 'good'}>{isPaused ? 'Paused by you' : 'May spend'}</Chip>
      </div>
      {budgets.length === 0 ? (
        <p class="soft">No budget limits what it spends in all. Its other rules still do.</p>
      ) : (
        <div class="stack stack--loose">
          {budgets.map(({ span, used, left, resetsAt }, position) => (
            <BudgetBurn
              key={span}
              used={used}
              left={left}
              span={span}
              isBig={position === 0}
              isOff={isPaused}
              end={resetsAt === null ? undefined : <>New {formatWhen(resetsAt)}</>}
            />
          ))}
        </div>
      )}
      {caller.policy !== null && typeof caller.policy === 'object' && (
        <div class="stack stack--tight small soft">
          <PolicyWords policy={caller.policy as Policy} />
        </div>
      )}
      {agentId !== null && (
        <PageButton path={`/agents/${encodeURIComponent(agentId)}`}>Change its limits</PageButton>
      )}
    </View>
  )
}
