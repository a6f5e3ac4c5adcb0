/** The agents: what each may still spend today, and the cap of all together. */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { Agent, OwnerCap } from '../../client/operations.ts'
import { AgentGroupRow } from '../components/agent-row.tsx'
import { BudgetBurn } from '../components/burn.tsx'
import { ActionButton, Dialog, DialogButtons, Field, MoneyInput } from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { Empty, Failed, SkeletonRows, toast } from '../components/messages.tsx'
import { PageHead, Panel } from '../components/panel.tsx'
import { StartAgain, stoppedAgents } from '../components/start-again.tsx'
import { now } from '../data/clock.ts'
import { bursar, withProof } from '../data/gateway.ts'
import { agents, endedAgents, ownerCap } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { groupAgents, nameState } from '../words/delegation.ts'
import { formatUsd, isAmount } from '../words/money.ts'
import { formatWhen } from '../words/time.ts'

export function AgentsPage() {
  const state = useResource(agents)
  const ended = loadedValue(useResource(endedAgents))?.keys ?? []
  return (
    <>
      <PageHead
        title="Agents"
        actions={
          <Link class="btn btn--primary" href="/agents/new">
            <Icon name="plus" small />
            New agent
          </Link>
        }
      >
        Each one spends under its own policy. What the policy does not allow is denied.
      </PageHead>
      <Cap />
      {state.status === 'loading' && (
        <Panel title="Active">
          <SkeletonRows rows={4} />
        </Panel>
      )}
      {state.status === 'failed' && (
        <Panel title="Active">
          <Failed subject="The list of agents" error={state.error} retry={agents.reload} />
        </Panel>
      )}
      {state.status === 'ready' && <Lists keys={state.value.keys} ended={ended} />}
    </>
  )
}

function Lists({ keys, ended }: { readonly keys: readonly Agent[]; readonly ended: readonly Agent[] }) {
  const stopped = stoppedAgents(keys)
  const [isStarting, start] = useState(false)
  const groups = groupAgents([
    ...keys,
    ...ended.filter(({ agentId }) => !keys.some((key) => key.agentId === agentId)),
  ])
  const active = groups.filter(({ agent }) => nameState(agent, now()) === 'running')
  const over = groups.filter((group) => !active.includes(group))
  const running = keys.filter((key) => nameState(key, now()) === 'running').length
  return (
    <>
      <Panel title="Active" more={<span class="small faint num">{running}</span>}>
        {active.length === 0 ? (
          <Empty
            icon="agent"
            title={over.length === 0 ? 'No agent yet' : 'No agent is active'}
            action={
              <Link class="btn" href="/agents/new">
                New agent
              </Link>
            }
          >
            An agent gets its own key, budget and rules. You can stop it at any second.
          </Empty>
        ) : (
          <ul class="rows">
            {active.map((group) => (
              <AgentGroupRow key={group.agent.agentId} group={group} />
            ))}
          </ul>
        )}
      </Panel>
      {over.length > 0 && (
        <Panel
          title="Stopped and ended"
          more={
            stopped.length > 1 && (
              <button class="btn btn--sm" type="button" onClick={() => start(true)}>
                <Icon name="play" small />
                Start again…
              </button>
            )
          }
          foot="Revoked agents stay here with their name and history. A budget that was used stays used."
        >
          <ul class="rows">
            {over.map((group) => (
              <AgentGroupRow key={group.agent.agentId} group={group} />
            ))}
          </ul>
        </Panel>
      )}
      {isStarting && <StartAgain close={() => start(false)} />}
    </>
  )
}

/** The cap over all agents together. */
function Cap() {
  const state = useResource(ownerCap)
  const [isOpen, open] = useState(false)
  if (state.status !== 'ready')
    return state.status === 'failed' ? (
      <Panel>
        <Failed subject="The cap" error={state.error} retry={ownerCap.reload} />
      </Panel>
    ) : (
      <section class="panel" aria-busy="true">
        <div class="panel__body stack">
          <span class="bone bone--w2" />
          <span class="bone bone--w3" />
        </div>
      </section>
    )
  const cap = state.value
  const longer = [
    [cap.week, 'this week'],
    [cap.month, 'this month'],
  ] as const
  return (
    <section class="panel" aria-labelledby="cap">
      <div class="panel__body">
        <div class="row row--wide row--wrap">
          <div class="grow stack stack--tight cap">
            <h2 class="stat__name" id="cap">
              All agents together, today
            </h2>
            {cap.remaining === null ? (
              <p>
                <b class="num">{formatUsd(cap.used)}</b> spent. There is no cap over all agents: each has its
                own budget.
              </p>
            ) : (
              <BudgetBurn
                used={cap.used}
                left={cap.remaining}
                span="today"
                isBig
                end={`Full again at ${formatWhen(cap.resetsAt, new Date(cap.resetsAt))}`}
              />
            )}
            {longer.some(([{ remaining }]) => remaining !== null) && (
              <p class="small faint num">
                {longer
                  .flatMap(([{ remaining }, span]) =>
                    remaining === null ? [] : [`${formatUsd(remaining)} left ${span}`],
                  )
                  .join(' · ')}
              </p>
            )}
          </div>
          <button class="btn" type="button" onClick={() => open(true)}>
            <Icon name="edit" small />
            {cap.remaining === null ? 'Set a cap' : 'Change the cap'}
          </button>
        </div>
      </div>
      {isOpen && <CapDialog cap={cap} close={() => open(false)} />}
    </section>
  )
}

const spans = [
  ['daily', 'A day'],
  ['weekly', 'A week'],
  ['monthly', 'A month'],
] as const

function CapDialog({ cap, close }: { readonly cap: OwnerCap; readonly close: () => void }) {
  const [values, set] = useState({
    daily: cap.dailyBudget?.max ?? '',
    weekly: cap.weeklyBudget?.max ?? '',
    monthly: cap.monthlyBudget?.max ?? '',
  })
  const isWrong = (text: string) => text !== '' && !isAmount(text)
  const hasError = Object.values(values).some(isWrong)
  const save = async () => {
    const budget = (max: string) => (max === '' ? null : { max })
    const answer = await withProof(() =>
      bursar.agents.policy.set({
        dailyBudget: budget(values.daily),
        weeklyBudget: budget(values.weekly),
        monthlyBudget: budget(values.monthly),
      }),
    )
    ownerCap.put(answer)
    close()
    toast('The cap is changed.')
  }
  return (
    <Dialog title="The cap of all agents together" close={close}>
      <p>No agent spends more than its own policy allows, nor all together more than this.</p>
      {spans.map(([name, label]) => (
        <Field
          key={name}
          label={
            <>
              {label} <span class="faint">(empty: no cap)</span>
            </>
          }
          error={isWrong(values[name]) ? 'An amount such as 250.00, or nothing.' : undefined}
        >
          {(props) => (
            <MoneyInput
              value={values[name]}
              onInput={(event) => set({ ...values, [name]: event.currentTarget.value.trim() })}
              {...props}
            />
          )}
        </Field>
      ))}
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={save} busy="Saving" disabled={hasError}>
          Save
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}
