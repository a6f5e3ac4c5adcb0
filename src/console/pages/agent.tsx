/** One agent: stop it, see what it spent, what it may do, and why each decision fell. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Link, useParams } from 'wouter-preact'
import type { Agent, Policy } from '../../client/operations.ts'
import { AgentAccess } from '../components/agent-access.tsx'
import { Figure } from '../components/amount.tsx'
import { Bar, BarLegend, BudgetBurn, Burn } from '../components/burn.tsx'
import { type DayBar, Days, HBars } from '../components/charts.tsx'
import { ActionButton, Dialog, DialogButtons, Field, Segments } from '../components/controls.tsx'
import { DecisionRow } from '../components/decision.tsx'
import { Delegate } from '../components/delegate.tsx'
import { Icon } from '../components/icon.tsx'
import { AgentGlyph, Chip, Status } from '../components/marks.tsx'
import { Banner, Empty, Failed, SkeletonRows, toast } from '../components/messages.tsx'
import { MissingObject } from '../components/missing.tsx'
import { Columns, Panel, useTitle } from '../components/panel.tsx'
import { PolicyEditor } from '../components/policy-editor.tsx'
import { Untrusted } from '../components/quote.tsx'
import { RunTree } from '../components/run-tree.tsx'
import { PolicyWords } from '../components/sentence.tsx'
import { now } from '../data/clock.ts'
import { bursar, isProblem, withProof } from '../data/gateway.ts'
import { agentById, agents, decisionsById, endedAgents, usageById } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { findLeast, nameState, splitLeft } from '../words/delegation.ts'
import { emptyDelegation } from '../words/delegation-draft.ts'
import { digits } from '../words/digits.ts'
import { addDecimals, compareDecimals, formatUsd } from '../words/money.ts'
import { count, isAddress, shortAddress } from '../words/names.ts'
import { plainText, shortText } from '../words/plain-text.ts'
import { nameCategory, nameConnection } from '../words/policy.ts'
import {
  draftPreset,
  type PolicyDraft,
  presets,
  readPolicy,
  toDraft,
  toPolicy,
} from '../words/policy-draft.ts'
import { formatDay, formatMoment, formatSpan, formatWhen } from '../words/time.ts'

export function AgentPage() {
  const { id = '' } = useParams<{ id: string }>()
  return <Loaded key={id} id={id} />
}

function Loaded({ id }: { readonly id: string }) {
  const source = agentById(id)
  const state = useResource(source)
  useTitle(state.status === 'ready' ? shortText(state.value.name) : 'Agent')
  if (state.status !== 'ready')
    return (
      <MissingObject
        state={state}
        noun="agent"
        subject="The agent"
        list={{ path: '/agents', name: 'Agents' }}
        retry={source.reload}
      />
    )
  return <View agent={state.value} />
}

/** Takes over what an operation answered, here and in the lists. */
async function show(agent: Agent): Promise<void> {
  agentById(agent.agentId).put(agent)
  await Promise.all([agents.reload(), endedAgents.reload()])
}

function View({ agent }: { readonly agent: Agent }) {
  const [isEditing, edit] = useState(false)
  const [isDelegating, delegate] = useState(false)
  // Kept while the form is closed, so that a way back loses nothing.
  const [draft, change] = useState(emptyDelegation)
  const isEnded = agent.status === 'revoked'
  const policy = readPolicy(agent.policy)
  if (isEditing) return <Editing agent={agent} close={() => edit(false)} />
  if (isDelegating && policy !== null)
    return (
      <Delegate
        agent={agent}
        policy={policy}
        draft={draft}
        change={change}
        close={() => delegate(false)}
        done={() => change(emptyDelegation)}
      />
    )
  const mayDelegate =
    policy !== null && nameState(agent, now()) === 'running' && agent.path.length < MAX_DEPTH
  return (
    <>
      <Path agent={agent} />
      <Head agent={agent} edit={() => edit(true)} />
      {isEnded && (
        <div class="banner" role="status">
          <Icon name="lock" />
          <span class="grow">
            {agent.path.length === 0
              ? 'This agent was revoked. It cannot spend any more; its history stays here.'
              : 'This agent has ended. It cannot spend any more; its history stays here.'}
          </span>
        </div>
      )}
      {isHeldAbove(agent) && (
        <div class="banner banner--warn" role="status">
          <Icon name="clock" />
          <span class="grow">
            An agent above it is stopped, so it spends nothing until that one starts again.
          </span>
        </div>
      )}
      <Columns
        main={
          <>
            <Left agent={agent} />
            <RunTree agent={agent} delegate={mayDelegate ? () => delegate(true) : null} />
            <ByDay agent={agent} />
            <Shares agent={agent} />
            <Decisions agentId={agent.agentId} />
          </>
        }
        side={
          <>
            <MayDo agent={agent} edit={isEnded ? null : () => edit(true)} />
            <AgentAccess agent={agent} show={show} />
            <Connects agent={agent} />
            {!isEnded && <Ending agent={agent} />}
          </>
        }
      />
    </>
  )
}

/** Generations below a root. The last cannot delegate. */
const MAX_DEPTH = 4

/** True if it is stopped only because one above it is. */
function isHeldAbove({ status, path, pausedAt }: Agent): boolean {
  return status === 'paused' && path.length > 0 && pausedAt === null
}

/** The agents above a delegated one, root first. */
function Path({ agent: { path, name } }: { readonly agent: Agent }) {
  if (path.length === 0) return null
  return (
    <nav class="path" aria-label="Agents above it">
      <ol>
        {path.map((above) => (
          <li key={above.agentId}>
            <Link class="trim" href={`/agents/${above.agentId}`}>
              <Untrusted>{shortText(above.name)}</Untrusted>
            </Link>
            <Icon name="right" small />
          </li>
        ))}
        <li aria-current="page">
          <span class="trim">
            <Untrusted>{shortText(name)}</Untrusted>
          </span>
        </li>
      </ol>
      <p>The limits of those above hold too.</p>
    </nav>
  )
}

function Head({ agent, edit }: { readonly agent: Agent; readonly edit: () => void }) {
  const { agentId, name, status, connection, createdAt } = agent
  const [isRenaming, rename] = useState(false)
  const isEnded = status === 'revoked'
  const stop = async () => {
    // Shown as stopped only when the gateway has said so.
    await show(await bursar.agents.keys.pause({ id: agentId }))
    toast(`${shortText(name)} is stopped. It spends nothing until you start it again.`)
  }
  const start = async () => {
    await show(await withProof(() => bursar.agents.keys.update({ id: agentId, status: 'active' })))
    toast(`${shortText(name)} may spend again.`)
  }
  return (
    <div class="pagehead">
      <div class="row grow">
        <AgentGlyph id={agentId} name={name} size="lg" isOff={status !== 'active'} />
        <div class="pagehead__text">
          <h1 class="wrap" tabIndex={-1}>
            <Untrusted>{plainText(name)}</Untrusted>
          </h1>
          <p class="small soft row row--wrap">
            <Status status={status} />
            <span>{nameConnection(connection)}</span>
            <span class="only-wide">since {formatDay(createdAt)}</span>
            {!isEnded && (
              <button class="linkbtn" type="button" onClick={() => rename(true)}>
                Rename
              </button>
            )}
          </p>
        </div>
      </div>
      {!isEnded && (
        <div class="pagehead__actions">
          <button class="btn" type="button" onClick={edit}>
            <Icon name="edit" small />
            Change policy
          </button>
          {status === 'active' ? (
            <ActionButton key="stop" kind="stop" icon="stop" run={stop} busy="Stopping">
              Stop
            </ActionButton>
          ) : isHeldAbove(agent) ? null : (
            <ActionButton key="start" kind="primary" icon="play" run={start} busy="Starting">
              Start again
            </ActionButton>
          )}
        </div>
      )}
      {isRenaming && <RenameDialog agent={agent} close={() => rename(false)} />}
    </div>
  )
}

function RenameDialog({ agent, close }: { readonly agent: Agent; readonly close: () => void }) {
  const [name, set] = useState(agent.name)
  const save = async () => {
    await show(await withProof(() => bursar.agents.keys.update({ id: agent.agentId, name: name.trim() })))
    close()
  }
  return (
    <Dialog title="Rename the agent" close={close}>
      <Field label="Name" hint="You see it on every payment it makes.">
        {(props) => (
          <input
            class="input"
            maxLength={60}
            value={name}
            onInput={(event) => set(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={save} busy="Saving" disabled={name.trim() === ''}>
          Save
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

/** Remaining budgets of today, this week and this month. */
function Left({ agent }: { readonly agent: Agent }) {
  const { usage, setAside, status, path } = agent
  const policy = readPolicy(agent.policy)
  if (policy === null || usage.remaining === null)
    return (
      <Panel>
        <div class="panel__body stack stack--tight">
          <h2 class="stat__name">Left today</h2>
          <p>This agent sees and asks only. It has no policy to spend under.</p>
        </div>
      </Panel>
    )
  const isOff = status !== 'active'
  const isDelegated = path.length > 0
  const seconds = Math.max(0, (Date.parse(usage.resetsAt) - now().getTime()) / 1000)
  const spans = [
    ['This week, until Monday', 'this week', usage.week],
    ['This month', 'this month', usage.month],
    ['In total', 'in total', usage.total],
  ] as const
  // A run is short: what has no limit of its own says nothing about it.
  const shown = spans.filter(
    ([, span, { remaining }]) => remaining !== null || (!isDelegated && span !== 'in total'),
  )
  return (
    <section class="panel" aria-labelledby="left">
      <div class="panel__body stack stack--loose">
        <div class="stack stack--tight">
          <div class="row row--wide">
            <h2 class="stat__name" id="left">
              {isDelegated
                ? isOff
                  ? 'Left now, if it were active'
                  : 'Left now'
                : isOff
                  ? 'Left today, if it were active'
                  : 'Left today'}
            </h2>
            {!isDelegated && <span class="small faint num">Full again in {formatSpan(seconds)}</span>}
          </div>
          {isDelegated ? <LeastOnPath agent={agent} /> : <Today agent={agent} policy={policy} />}
        </div>
        <div class="cols cols--even">
          {isDelegated && (
            <Period
              name={`Today, full again in ${formatSpan(seconds)}`}
              span="today"
              part={usage}
              aside={setAside}
              isOff={isOff}
            />
          )}
          {shown.map(([name, span, part]) => (
            <Period key={span} name={name} span={span} part={part} aside={setAside} isOff={isOff} />
          ))}
        </div>
      </div>
    </section>
  )
}

/** The figure of today and its bar, with the part that is set aside for keys below. */
function Today({ agent, policy }: { readonly agent: Agent; readonly policy: Policy }) {
  const { usage, setAside, status } = agent
  const isOff = status !== 'active'
  const remaining = usage.remaining ?? '0'
  const limit = addDecimals(usage.used, remaining)
  const { left, aside } = splitLeft(remaining, setAside)
  const isSplit = compareDecimals(aside, '0') > 0
  const maxCount = policy.dailyBudget.maxCount
  const payments =
    maxCount === undefined
      ? count(usage.count, 'payment')
      : `${count(usage.count, 'payment')} of at most ${maxCount.toLocaleString(undefined, digits)}`
  return (
    <>
      <Figure usd={left} />
      {isSplit ? (
        <>
          <div class="burn burn--big">
            <Bar
              left={left}
              aside={aside}
              limit={limit}
              isOff={isOff}
              label={`${formatUsd(left)} of ${formatUsd(limit)} left today, ${formatUsd(aside)} set aside for agents below it`}
            />
          </div>
          <BarLegend
            parts={[
              ['left', 'Left', left],
              ['aside', 'Set aside below', aside],
              ['spent', 'Spent', usage.used],
            ]}
          />
          <p class="small faint num">
            {payments} · {formatUsd(limit)} a day
          </p>
        </>
      ) : (
        <Burn
          left={left}
          limit={limit}
          isBig
          isOff={isOff}
          label={`${formatUsd(left)} of ${formatUsd(limit)} left today`}
          words={`${formatUsd(usage.used)} of ${formatUsd(limit)} spent`}
          end={payments}
        />
      )}
    </>
  )
}

/** The limit that a delegated agent meets first, and whose it is. */
function LeastOnPath({ agent }: { readonly agent: Agent }) {
  const usage = useResource(usageById(agent.agentId))
  if (usage.status === 'loading') return <span class="bone bone--fig" />
  const least = usage.status === 'ready' ? findLeast(usage.value.limits ?? []) : undefined
  if (least === undefined)
    return (
      <>
        <Figure usd={agent.usage.remaining ?? '0'} />
        <p class="small soft">Of its own budget today. Those above it may have less left.</p>
      </>
    )
  const holder = agent.path.find(({ agentId }) => agentId === least.agentId)
  return (
    <>
      <Figure usd={least.usd} />
      <p class="small soft">
        {holder === undefined ? (
          <>
            Its own budget <b>{least.span}</b> is the least on its path.
          </>
        ) : (
          <>
            <Link href={`/agents/${holder.agentId}`}>
              <Untrusted>{shortText(holder.name)}</Untrusted>
            </Link>{' '}
            has the least on its path: this is what is left there <b>{least.span}</b>.
          </>
        )}
      </p>
    </>
  )
}

function Period({
  name,
  span,
  part,
  aside,
  isOff,
}: {
  readonly name: string
  readonly span: string
  readonly aside: string
  readonly part: { readonly used: string; readonly remaining: string | null }
  readonly isOff: boolean
}) {
  return (
    <div class="stack stack--tight">
      <span class="stat__name">{name}</span>
      {part.remaining === null ? (
        <span class="small num">
          <b>{formatUsd(part.used)}</b> spent, without a limit of its own
        </span>
      ) : (
        <BudgetBurn used={part.used} left={part.remaining} aside={aside} span={span} isOff={isOff} />
      )}
    </div>
  )
}

const DAY_MS = 86_400_000

/** The last days up to today, days without spends included. @param now today's UTC day is the last */
function fillDays(known: readonly DayBar[], all: number, now: Date): readonly DayBar[] {
  const used = new Map(known.map((day) => [day.day, day.used]))
  return Array.from({ length: all }, (_, position) => {
    const day = new Date(now.getTime() - (all - 1 - position) * DAY_MS).toISOString().slice(0, 10)
    return { day, used: used.get(day) ?? '0' }
  })
}

function ByDay({ agent }: { readonly agent: Agent }) {
  const source = usageById(agent.agentId)
  const state = useResource(source)
  const [span, choose] = useState<'week' | 'month'>('week')
  const policy = readPolicy(agent.policy)
  if (policy === null) return null
  return (
    <Panel
      title="Spent by day"
      more={
        <Segments
          label="Span"
          options={[
            ['week', 'Week'],
            ['month', 'Month'],
          ]}
          value={span}
          choose={choose}
        />
      }
    >
      {state.status === 'loading' && <SkeletonRows rows={3} />}
      {state.status === 'failed' && (
        <Failed subject="What it spent" error={state.error} retry={source.reload} />
      )}
      {state.status === 'ready' && (
        <div class="panel__body">
          <Days
            days={fillDays(
              [{ day: agent.usage.day, used: agent.usage.used }, ...state.value.days].reverse(),
              span === 'week' ? 7 : 30,
              new Date(),
            )}
            limit={String(policy.dailyBudget.max)}
          />
        </div>
      )}
    </Panel>
  )
}

const SHOWN_PAYEES = 5

/** Categories and payees of the last 30 days. */
function Shares({ agent }: { readonly agent: Agent }) {
  const usage = loadedValue(useResource(usageById(agent.agentId)))
  if (usage === undefined || usage.categories.length === 0) return null
  const span = <span class="small faint">Last 30 days</span>
  return (
    <div class="cols cols--even">
      <Panel title="By category" more={span}>
        <div class="panel__body">
          <HBars
            bars={usage.categories.map(({ category, used }) => ({
              name: nameCategory(category),
              usd: used,
            }))}
          />
        </div>
      </Panel>
      <Panel title="Payees" more={span}>
        <div class="panel__body">
          <HBars
            isOneHue
            bars={usage.payees.slice(0, SHOWN_PAYEES).map(({ payee, used }) => ({
              name: shortText(shortAddress(payee)),
              usd: used,
              isMono: isAddress(payee),
            }))}
          />
        </div>
      </Panel>
    </div>
  )
}

const SHOWN_DECISIONS = 8

function Decisions({ agentId }: { readonly agentId: string }) {
  const source = decisionsById(agentId)
  const state = useResource(source)
  const counts = loadedValue(useResource(usageById(agentId)))?.decisions
  const [isAll, showAll] = useState(false)
  if (state.status === 'loading')
    return (
      <Panel title="Decisions">
        <SkeletonRows rows={4} />
      </Panel>
    )
  if (state.status === 'failed')
    return (
      <Panel title="Decisions">
        <Failed subject="The list of decisions" error={state.error} retry={source.reload} />
      </Panel>
    )
  const { decisions, nextCursor } = state.value
  const shown = isAll ? decisions : decisions.slice(0, SHOWN_DECISIONS)
  return (
    <Panel
      title="Decisions"
      more={
        counts !== undefined && (
          <span class="small faint num">
            Last 30 days: {counts.allowed} allowed, {counts.denied} denied, {counts.approvalRequired} asked
          </span>
        )
      }
      foot={
        !isAll && decisions.length > SHOWN_DECISIONS ? (
          <button class="linkbtn small" type="button" onClick={() => showAll(true)}>
            Show {nextCursor === null ? 'all' : 'the newest'} {decisions.length}
          </button>
        ) : undefined
      }
    >
      {decisions.length === 0 ? (
        <Empty icon="activity" title="It has asked for nothing yet">
          Each spend it tries shows here, with the rules that allowed or denied it.
        </Empty>
      ) : (
        <ul class="rows">
          {shown.map((decision) => (
            <DecisionRow key={decision.decisionId} decision={decision} />
          ))}
        </ul>
      )}
    </Panel>
  )
}

function MayDo({ agent, edit }: { readonly agent: Agent; readonly edit: (() => void) | null }) {
  const policy = readPolicy(agent.policy)
  return (
    <Panel
      title="What it may do"
      more={
        edit !== null && (
          <button class="linkbtn small" type="button" onClick={edit} aria-label="Change what it may do">
            Change
          </button>
        )
      }
    >
      <div class="panel__body stack">
        {policy === null ? <p>It may see, and spend nothing.</p> : <PolicyWords policy={policy} />}
        {policy !== null && (
          <div class="row row--wrap">
            <Chip kind="plain">Version {agent.policyVersion}</Chip>
          </div>
        )}
      </div>
    </Panel>
  )
}

function Connects({ agent }: { readonly agent: Agent }) {
  const { connection, agentId, keyId, createdAt, expiresAt, firstUsedAt, task, earmarked, path } = agent
  const facts: readonly (readonly [string, ComponentChildren])[] = [
    ['By', nameConnection(connection)],
    ['Since', formatDay(createdAt)],
    ...(expiresAt === null
      ? []
      : [['Until', path.length === 0 ? formatDay(expiresAt) : formatMoment(expiresAt)] as const]),
    ...(task === null
      ? []
      : [
          [
            'Task',
            <Link href={`/activity?task=${encodeURIComponent(task)}`}>
              <Untrusted>{task}</Untrusted>
            </Link>,
          ] as const,
        ]),
    ...(earmarked === null ? [] : [['Set aside for it', formatUsd(earmarked)] as const]),
    ['First call', firstUsedAt === null ? 'None yet' : formatWhen(firstUsedAt)],
    ['Agent id', <span class="mono small">{agentId}</span>],
    ...(keyId === null ? [] : [['Key', <span class="mono small">{keyId}</span>] as const]),
  ]
  return (
    <Panel title="How it connects">
      <div class="panel__body">
        <dl class="facts">
          {facts.flatMap(([name, value]) => [
            <dt key={`${name} name`}>{name}</dt>,
            <dd key={name}>{value}</dd>,
          ])}
        </dl>
      </div>
    </Panel>
  )
}

function Ending({ agent }: { readonly agent: Agent }) {
  const [isOpen, open] = useState(false)
  return (
    <Panel>
      <div class="panel__body stack stack--tight">
        <h2>End it for good</h2>
        <p class="small soft">Revoking cannot be undone. Its history stays.</p>
        <div>
          <button class="btn btn--sm btn--stopline" type="button" onClick={() => open(true)}>
            <span class="trim">
              Revoke <Untrusted>{shortText(agent.name)}</Untrusted>
            </span>
          </button>
        </div>
      </div>
      {isOpen && <RevokeDialog agent={agent} close={() => open(false)} />}
    </Panel>
  )
}

function RevokeDialog({ agent, close }: { readonly agent: Agent; readonly close: () => void }) {
  const [typed, set] = useState('')
  const name = shortText(agent.name)
  // An agent with a name that cannot be typed must not be harder to revoke.
  const wanted = isTypable(agent.name) ? agent.name.trim() : 'revoke'
  const revoke = async () => {
    await show(await withProof(() => bursar.agents.keys.update({ id: agent.agentId, status: 'revoked' })))
    close()
    toast(`${name} is revoked.`)
  }
  return (
    <Dialog
      title={
        <>
          Revoke <Untrusted>{name}</Untrusted>?
        </>
      }
      close={close}
    >
      <p>
        Its access ends now and for good. What it did stays in your activity. To halt it for a while, press
        Stop instead.
      </p>
      <Field
        label={
          <>
            Type{' '}
            <b>
              <Untrusted>{wanted}</Untrusted>
            </b>{' '}
            to confirm
          </>
        }
      >
        {(props) => (
          <input
            class="input"
            autoComplete="off"
            value={typed}
            onInput={(event) => set(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <DialogButtons close={close} leave="Keep it">
        <ActionButton kind="stop" run={revoke} busy="Revoking" disabled={typed.trim() !== wanted}>
          Revoke for good
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

/** True for a name that its reader can type as it looks. */
function isTypable(name: string): boolean {
  const trimmed = name.trim()
  return shortText(trimmed) === trimmed && !/\s\s|[^\x20-\x7e\p{L}]/u.test(trimmed) && trimmed !== ''
}

function draftFrom(agent: Agent): PolicyDraft {
  const policy = readPolicy(agent.policy)
  return policy === null ? draftPreset(presets[0]) : toDraft(policy)
}

/** The policy editor in place of the page. */
function Editing({ agent, close }: { readonly agent: Agent; readonly close: () => void }) {
  // The draft was made from this version. Another browser, or the agent's registration, may change it meanwhile.
  const [opened, begin] = useState(agent)
  const policy = readPolicy(opened.policy)
  const [draft, set] = useState(draftFrom(opened))
  const isOutdated = agent.policyVersion !== opened.policyVersion
  const beginAnew = () => {
    begin(agent)
    set(draftFrom(agent))
  }
  const save = async () => {
    const change = { policy: toPolicy(draft, policy), expectedVersion: opened.policyVersion }
    let answer: Agent
    try {
      answer = await withProof(() => bursar.agents.keys.update({ id: agent.agentId, ...change }))
    } catch (error) {
      // Saving over it could loosen what was just tightened elsewhere. The page says so.
      if (isProblem(error, 'conflict')) return agentById(agent.agentId).reload()
      throw error
    }
    await show(answer)
    close()
    toast(`Saved. Version ${answer.policyVersion} holds from now on.`)
  }
  return (
    <>
      <div class="pagehead">
        <div class="row grow">
          <AgentGlyph id={agent.agentId} name={agent.name} size="lg" />
          <div class="pagehead__text">
            <h1 class="wrap" tabIndex={-1}>
              What <Untrusted>{shortText(agent.name)}</Untrusted> may do
            </h1>
            <p class="soft">
              Tighter holds at once. Looser may need your second factor. What was used stays used.
            </p>
          </div>
        </div>
      </div>
      {isOutdated && (
        <Banner
          kind="warn"
          icon="warning"
          action={
            <button class="btn btn--sm" type="button" onClick={beginAnew}>
              Show what holds now
            </button>
          }
        >
          These rules were changed elsewhere since you opened them. Nothing is saved from here until you begin
          with what holds now.
        </Banner>
      )}
      <PolicyEditor
        draft={draft}
        change={set}
        base={policy}
        keyIds={[agent.agentId]}
        name={agent.name}
        back={
          <button class="btn btn--quiet" type="button" onClick={close}>
            Cancel
          </button>
        }
        save={save}
        saveWords="Save"
      />
    </>
  )
}
