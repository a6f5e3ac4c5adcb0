/** An agent that connects while its owner waits: what it got, its first call, and what it asks for. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { Agent } from '../../client/operations.ts'
import { now } from '../data/clock.ts'
import { bursar, withProof } from '../data/gateway.ts'
import { agentById, agents, approvals } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { onEvent } from '../data/stream.ts'
import { describeCall } from '../words/calls.ts'
import { shortText } from '../words/plain-text.ts'
import { describePolicy, describeScopes, joinSentence } from '../words/policy.ts'
import { deriveScopes, type PolicyDraft, readPolicy, toPolicy } from '../words/policy-draft.ts'
import { CallLine } from './call.tsx'
import { ActionButton } from './controls.tsx'
import { Icon } from './icon.tsx'
import { Banner } from './messages.tsx'
import { Untrusted } from './quote.tsx'
import { PolicyWords } from './sentence.tsx'

/** The newest agent that connected since the page was opened, as it is now; null until one does. */
export function useArrival(): Agent | null {
  const [arrived, set] = useState<Agent | null>(null)
  const openedAt = useRef(now())
  useEffect(
    () =>
      onEvent((event) => {
        if (event !== null && event.type !== 'key.created') return
        void (event === null ? findNewest(openedAt.current) : bursar.agents.keys.get({ id: event.object.id }))
          .then((agent) => {
            if (agent !== null) set(agent)
          })
          .catch(() => undefined)
      }),
    [],
  )
  return arrived
}

/** The agent that connected while events were missed. */
async function findNewest(since: Date): Promise<Agent | null> {
  const { keys } = await bursar.agents.keys.list({ limit: 1, include: 'api_keys' })
  const [newest] = keys
  return newest !== undefined && Date.parse(newest.createdAt) > since.getTime() ? newest : null
}

/** Reads make no events. */
const POLL_MS = 3000

/** The agent as it is now. */
export function useAgent(arrived: Agent): Agent {
  return loadedValue(useResource(agentById(arrived.agentId))) ?? arrived
}

/** The agent as it is now, read again until it has made its first call. */
export function useFirstCall(arrived: Agent): Agent {
  const source = agentById(arrived.agentId)
  const agent = useAgent(arrived)
  const isWaiting = agent.firstUsedAt === null && agent.status !== 'revoked'
  useEffect(() => {
    if (!isWaiting) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') void source.reload()
    }, POLL_MS)
    return () => clearInterval(timer)
  }, [isWaiting, source])
  return agent
}

export function WaitingForAgent() {
  return (
    <div class="banner" role="status">
      <Icon name="clock" />
      <span class="grow">Waiting for the agent to connect. This page notices by itself.</span>
    </div>
  )
}

/** A connected agent. @property name and draft chosen for it before */
export function Arrived({
  agent,
  name,
  draft,
}: {
  readonly agent: Agent
  readonly name: string
  readonly draft: PolicyDraft
}) {
  const takeOver = async () => {
    const answer = await withProof(() =>
      bursar.agents.keys.update({
        id: agent.agentId,
        name: name.trim(),
        ...(agent.policy === null ? {} : { policy: toPolicy(draft) }),
      }),
    )
    agentById(answer.agentId).put(answer)
    void agents.reload()
  }
  return (
    <div class="stack">
      <Progress agent={agent} />
      <Asked agentId={agent.agentId} />
      {!isAsChosen(agent, name, draft) && agent.status !== 'revoked' && (
        <div>
          <ActionButton run={takeOver} busy="Setting">
            Use the name and limits set here
          </ActionButton>
        </div>
      )}
      <Granted agent={agent} draft={draft} />
    </div>
  )
}

/** True if the agent has the name and the limits that were chosen for it. */
function isAsChosen(agent: Agent, name: string, draft: PolicyDraft): boolean {
  const policy = readPolicy(agent.policy)
  const words = (one: Parameters<typeof describePolicy>[0]) => describePolicy(one).map(joinSentence).join(' ')
  // The ways to pay follow what the agent asked for: they are shown, and are no reason to set its limits again.
  const wanted = policy === null ? null : { ...toPolicy(draft), categories: policy.categories }
  return agent.name === name.trim() && (policy === null || wanted === null || words(policy) === words(wanted))
}

/** Says which step is awaited, or that none is. */
function Progress({ agent }: { readonly agent: Agent }) {
  const called = (
    <b>
      <Untrusted>{shortText(agent.name)}</Untrusted>
    </b>
  )
  if (agent.status === 'revoked')
    return (
      <Banner kind="warn" icon="warning">
        {called} was revoked. It cannot make calls any more; let it connect again.
      </Banner>
    )
  if (agent.firstUsedAt === null)
    return (
      <div class="stack stack--tight">
        <Banner icon="clock">{called} is connected. Waiting for its first call.</Banner>
        <p class="soft small">
          Ask it something that needs Bursar, such as “What is in my wallet?”. This page notices by itself.
        </p>
      </div>
    )
  return (
    <div class="banner banner--good" role="status">
      <Icon name="check" />
      <span class="grow">{called} is connected. It has made its first call.</span>
    </div>
  )
}

/** The calls of the agent that wait for the owner. */
function Asked({ agentId }: { readonly agentId: string }) {
  const waiting = (loadedValue(useResource(approvals))?.approvals ?? []).filter(
    (one) => one.agentId === agentId && one.status === 'pending',
  )
  return (
    <>
      {waiting.map((approval) => (
        <Banner
          key={approval.approvalId}
          kind="warn"
          icon="approvals"
          action={
            <Link class="btn btn--sm" href={`/approvals/${approval.approvalId}`}>
              Review
            </Link>
          }
        >
          It asks for your yes: <CallLine facts={describeCall(approval.operation, approval.input)} />
        </Banner>
      ))}
    </>
  )
}

/** Shows the access that an agent really got, beside the access chosen for it. */
function Granted({ agent, draft }: { readonly agent: Agent; readonly draft: PolicyDraft }) {
  const { see, change, move } = describeScopes(agent.scopes)
  const policy = readPolicy(agent.policy)
  const absent = describeScopes(
    deriveScopes(draft.categories).filter((scope) => !agent.scopes.includes(scope)),
  )
  const missing = [absent.see, absent.change, absent.move].filter((words) => words !== '').join(', ')
  const facts = [
    ['May see', see === '' ? 'Nothing' : see],
    ...(change === '' ? [] : [['May change', change] as const]),
    ['May move', move === '' ? 'Nothing' : move],
    ...(missing === '' ? [] : [['Not granted', missing] as const]),
  ] as const
  return (
    <div class="stack stack--tight">
      <h3>What it got</h3>
      <dl class="facts">
        {facts.flatMap(([fact, value]) => [
          <dt key={`${fact} name`}>{fact}</dt>,
          <dd key={fact}>{value}</dd>,
        ])}
      </dl>
      {policy !== null && <PolicyWords policy={policy} />}
    </div>
  )
}
