/** The tree of a run: what each key below an agent has spent of what, and one stop for each. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { Agent } from '../../client/operations.ts'
import { now } from '../data/clock.ts'
import { bursar } from '../data/gateway.ts'
import { agentById, agents, endedAgents, treeById } from '../data/money.ts'
import { useResource } from '../data/resource.ts'
import {
  computeReturn,
  countBelow,
  findNextEnd,
  isLiving,
  nameState,
  type RunNode,
  readBudget,
  readTree,
} from '../words/delegation.ts'
import { addDecimals, compareDecimals, formatUsd } from '../words/money.ts'
import { count } from '../words/names.ts'
import { shortText } from '../words/plain-text.ts'
import { formatMoment, formatSpan } from '../words/time.ts'
import { Bar, BarLegend } from './burn.tsx'
import { ActionButton, Copy } from './controls.tsx'
import { Icon } from './icon.tsx'
import { Chip, Status } from './marks.tsx'
import { Empty, Failed, SkeletonRows, toast } from './messages.tsx'
import { Untrusted } from './quote.tsx'

/** Keys of one parent that are shown at first. */
const SHOWN = 8
/** Generations that are open at first. */
const OPEN_DEPTH = 2

/** @property delegate opens the form for another key; null: the agent cannot have one. */
export function RunTree({
  agent,
  delegate,
}: {
  readonly agent: Agent
  readonly delegate: (() => void) | null
}) {
  const source = treeById(agent.agentId)
  const state = useResource(source)
  const heading = useRef<HTMLHeadingElement>(null)
  const tree = state.status === 'ready' ? readTree(state.value) : null
  useExpiry(tree, source.reload)
  // An agent that neither spends nor shares has nothing to show here.
  if (delegate === null && (tree === null || tree.children.length === 0)) return null
  const living = tree === null ? 0 : countBelow(tree, now())
  return (
    <section class="panel" aria-labelledby="run">
      <div class="panel__head">
        <h2 id="run" ref={heading} tabIndex={-1}>
          Who spends from it
        </h2>
        <div class="row">
          {living > 0 && <span class="small faint num only-wide">{living} below it</span>}
          {delegate !== null && (
            <button class="btn btn--sm" type="button" onClick={delegate}>
              <Icon name="branch" small />
              Delegate
            </button>
          )}
        </div>
      </div>
      {state.status === 'loading' && <SkeletonRows rows={3} />}
      {state.status === 'failed' && (
        <Failed subject="The tree of its run" error={state.error} retry={source.reload} />
      )}
      {tree !== null &&
        tree.children.length === 0 &&
        (agent.path.length === 0 ? (
          <NobodyYet />
        ) : (
          <p class="panel__body small soft">It spends alone: it has delegated nothing further.</p>
        ))}
      {tree !== null && tree.children.length > 0 && (
        <>
          <ul class="run">
            <Node
              node={tree}
              depth={0}
              above={null}
              ended={async () => {
                await Promise.all([
                  source.reload(),
                  agentById(agent.agentId).reload(),
                  agents.reload(),
                  endedAgents.reload(),
                ])
                heading.current?.focus()
              }}
            />
          </ul>
          <div class="panel__foot">
            <BarLegend
              parts={[
                ['left', 'Left'],
                ['aside', 'Set aside for keys below'],
                ['spent', 'Spent, with all below'],
              ]}
            />
          </div>
        </>
      )}
    </section>
  )
}

function NobodyYet() {
  return (
    <>
      <Empty icon="branch" title="It spends alone">
        Delegate a part of its budget to another agent here, or let it do so itself with the tool{' '}
        <code>agents_delegate</code>. For a program that knows nothing of Bursar, there is one command:
      </Empty>
      <div class="run__command">
        <Copy
          text="npx bursar run --key agent.json --budget 2.00 --for 30m -- python research.py"
          what="the command"
        />
      </div>
    </>
  )
}

/** Longer waits than this do not fit a timer. */
const MAX_WAIT_MS = 86_400_000

/** Reads again when a key expires: nothing else says so. */
function useExpiry(tree: RunNode | null, reload: () => Promise<void>): void {
  const next = tree === null ? null : findNextEnd(tree, now())
  useEffect(() => {
    if (next === null) return
    const wait = next - now().getTime() + 500
    if (wait > MAX_WAIT_MS) return
    const timer = setTimeout(() => void reload(), Math.max(wait, 0))
    return () => clearTimeout(timer)
  }, [next, reload])
}

interface NodeProps {
  readonly node: RunNode
  /** Generations below the root of the tree. */
  readonly depth: number
  /** The key above; null for the root. */
  readonly above: RunNode | null
  /** After a key has ended. */
  readonly ended: () => Promise<void>
}

function Node({ node, depth, above, ended }: NodeProps) {
  const [isOpen, open] = useState(depth < OPEN_DEPTH)
  const [isAsking, ask] = useState(false)
  const stop = useRef<HTMLButtonElement>(null)
  const at = now()
  const name = shortText(node.name)
  const canEnd = above !== null && isLiving(node, at)
  const keep = () => {
    ask(false)
    setTimeout(() => stop.current?.focus())
  }
  return (
    <li class="run__node">
      <div class="run__row">
        {node.children.length > 0 ? (
          <button
            class="iconbtn iconbtn--sm run__fold"
            type="button"
            aria-expanded={isOpen}
            aria-label={`Keys below ${name}`}
            onClick={() => open(!isOpen)}
          >
            <Icon name={isOpen ? 'down' : 'right'} small />
          </button>
        ) : (
          <span class="run__fold" />
        )}
        <Who node={node} above={above} hidden={isOpen ? 0 : countBelow(node, at)} />
        <Spent node={node} />
        <div class="run__end">
          {canEnd && (
            <button
              ref={stop}
              class="btn btn--sm btn--stopline"
              type="button"
              aria-label={`Stop ${name}`}
              aria-expanded={isAsking}
              onClick={() => ask(!isAsking)}
            >
              Stop
            </button>
          )}
        </div>
      </div>
      {isAsking && canEnd && <AskToEnd node={node} above={above.name} keep={keep} ended={ended} />}
      {isOpen && node.children.length > 0 && <Below node={node} depth={depth} ended={ended} />}
    </li>
  )
}

/** Name, state, task and end of a key. @property hidden living keys below it that are folded away */
function Who({ node, above, hidden }: Pick<NodeProps, 'node' | 'above'> & { readonly hidden: number }) {
  const { agentId, name } = node
  const isRoot = above === null
  // What it has from the key above is said there.
  const task = node.task === above?.task ? null : node.task
  const at = now()
  const state = nameState(node, at)
  const words = describeNode(node, at, hidden)
  return (
    <div class="run__who">
      <span class="run__name">
        {isRoot ? (
          <span class="trim">
            <Untrusted>{shortText(name)}</Untrusted>
          </span>
        ) : (
          <Link class="trim" href={`/agents/${agentId}`}>
            <Untrusted>{shortText(name)}</Untrusted>
          </Link>
        )}
        <State state={state} />
      </span>
      <span class="run__sub">
        {task !== null && (
          <Link class="chip run__task" href={`/activity?task=${encodeURIComponent(task)}`}>
            <span class="hide">Task </span>
            <span class="trim">
              <Untrusted>{task}</Untrusted>
            </span>
          </Link>
        )}
        <span class="run__facts">{words}</span>
      </span>
    </div>
  )
}

function State({ state }: { readonly state: ReturnType<typeof nameState> }) {
  if (state === 'running') return <span class="state run__running">Running</span>
  // The page of an agent says "Stopped" of a pause. Here, a stop is for good.
  if (state === 'paused')
    return (
      <Chip kind="warn" icon="clock">
        Paused
      </Chip>
    )
  return <Status status={state} />
}

/** `Today · 24 min left · 3 payments`. */
function describeNode(node: RunNode, at: Date, hidden: number): ComponentChildren {
  const { expiresAt, usage, earmarked } = node
  const { span } = readBudget(node)
  const isLife = span === 'in total'
  const parts: ComponentChildren[] = [
    ...(isLife ? [] : ['Today']),
    <span>{count(isLife ? usage.total.count : usage.count, 'payment')}</span>,
    ...(expiresAt === null || !isLiving(node, at)
      ? []
      : [
          <time dateTime={expiresAt} title={formatMoment(expiresAt)}>
            {formatSpan((Date.parse(expiresAt) - at.getTime()) / 1_000)} left
          </time>,
        ]),
    ...(earmarked !== null && isLiving(node, at) ? [<span>set aside</span>] : []),
    ...(hidden > 0 ? [<span>{hidden} below it</span>] : []),
  ]
  return parts.flatMap((part, position) => (position === 0 ? [part] : [' · ', part]))
}

function Spent({ node }: { readonly node: RunNode }) {
  const { used, aside, left, limit, span } = readBudget(node)
  const at = now()
  const isAside = compareDecimals(aside, '0') > 0
  return (
    <div class="run__spent">
      <span class="amt run__used">{formatUsd(used)}</span>
      <span class="amt run__limit">
        {limit === null ? (
          'spent'
        ) : (
          <>
            <span>of </span>
            {formatUsd(limit)}
          </>
        )}
      </span>
      {limit !== null && isLiving(node, at) && (
        <Bar
          left={left}
          aside={aside}
          limit={limit}
          isOff={nameState(node, at) !== 'running'}
          label={`${formatUsd(used)} of ${formatUsd(limit)} spent ${span}, ${formatUsd(left)} left${isAside ? `, ${formatUsd(aside)} set aside for keys below` : ''}`}
        />
      )}
    </div>
  )
}

/** The keys below one: those that live, then those that ended, folded. */
function Below({ node, depth, ended }: Omit<NodeProps, 'above'>) {
  const [isAll, showAll] = useState(false)
  const [isPast, showPast] = useState(false)
  const at = now()
  const living = node.children.filter((child) => isLiving(child, at))
  const past = node.children.filter((child) => !isLiving(child, at))
  const shown = isAll ? living : living.slice(0, SHOWN)
  const show = (child: RunNode) => (
    <Node key={child.agentId} node={child} depth={depth + 1} above={node} ended={ended} />
  )
  const spent = formatUsd(addDecimals('0', ...past.map(({ usage }) => usage.total.used)))
  return (
    <ul class="run run--below">
      {shown.map(show)}
      {shown.length < living.length && (
        <li class="run__more">
          <button class="linkbtn small" type="button" onClick={() => showAll(true)}>
            Show all {living.length}
          </button>
        </li>
      )}
      {past.length > 0 && (
        <li class="run__more">
          <button
            class="linkbtn small row"
            type="button"
            aria-expanded={isPast}
            onClick={() => showPast(!isPast)}
          >
            <Icon name={isPast ? 'down' : 'right'} small />
            {past.length} ended, {spent} spent
          </button>
        </li>
      )}
      {isPast && past.map(show)}
    </ul>
  )
}

/** Asks in place before a key ends, and says what ends with it. */
function AskToEnd({
  node,
  above,
  keep,
  ended,
}: {
  readonly node: RunNode
  readonly above: string
  readonly keep: () => void
  readonly ended: () => Promise<void>
}) {
  const words = useRef<HTMLParagraphElement>(null)
  useEffect(() => words.current?.focus(), [])
  const below = countBelow(node, now())
  const back = computeReturn(node)
  const name = shortText(node.name)
  const end = async () => {
    await bursar.agents.delegations.revoke({ id: node.agentId })
    toast(`${name} has ended${below === 0 ? '' : `, and ${below} below it`}.`)
    await ended()
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset does not name what Escape leaves.
    <div
      class="run__ask"
      role="group"
      aria-label={`Stop ${name}`}
      onKeyDown={(event) => {
        if (event.key === 'Escape') keep()
      }}
    >
      <p ref={words} tabIndex={-1} class="grow">
        <b>
          End <Untrusted>{name}</Untrusted> for good?
        </b>{' '}
        {below > 0 && (
          <>
            {count(below, 'key', 'keys')} below it {below === 1 ? 'ends' : 'end'} too.{' '}
          </>
        )}
        {compareDecimals(back, '0') > 0 ? (
          <>
            <b class="num">{formatUsd(back)}</b> set aside returns to{' '}
            <Untrusted>{shortText(above)}</Untrusted>.
          </>
        ) : (
          'Nothing is set aside for it.'
        )}{' '}
        What it spent stays spent.
      </p>
      <div class="row">
        <button class="btn btn--sm" type="button" onClick={keep}>
          Keep it
        </button>
        <ActionButton kind="stop" size="sm" run={end} busy="Ending">
          {below === 0 ? 'End it' : `End all ${below + 1}`}
        </ActionButton>
      </div>
    </div>
  )
}
