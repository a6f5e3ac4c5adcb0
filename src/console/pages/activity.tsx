/** Everything that came in and went out, in one statement. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { useSearchParams } from 'wouter-preact'
import type { ActivityEntry } from '../../client/operations.ts'
import { Amount } from '../components/amount.tsx'
import { ActionButton, Segments } from '../components/controls.tsx'
import { EntryDetails } from '../components/entry-details.tsx'
import { Icon } from '../components/icon.tsx'
import { AgentGlyph, IconGlyph, nameStatus, Status } from '../components/marks.tsx'
import { Empty, Failed, SkeletonRows, toast } from '../components/messages.tsx'
import { PageHead } from '../components/panel.tsx'
import { Untrusted } from '../components/quote.tsx'
import {
  chooseIcon,
  describeKind,
  isVoid,
  kinds,
  shownAmount,
  titleEntry,
  useAgentName,
} from '../components/statement.tsx'
import { account } from '../data/account.ts'
import { agents } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { downloadCsv, type StatementFilter, useStatement } from '../data/statement.ts'
import { digits } from '../words/digits.ts'
import { compareDecimals, formatDecimal, formatUsd, sumWorth } from '../words/money.ts'
import { count, extractInitials } from '../words/names.ts'
import { formatMoment } from '../words/time.ts'

const periods = { week: 7, month: 30, year: 365 } as const
const directions = [
  ['', 'All'],
  ['in', 'In'],
  ['out', 'Out'],
] as const

const statuses = [
  'completed',
  'pending',
  'on_its_way',
  'undelivered',
  'denied',
  'failed',
  'canceled',
  'reversed',
] as const satisfies readonly ActivityEntry['status'][]

const DAY_MS = 86_400_000
const SEARCH_AFTER_MS = 300

export function ActivityPage() {
  const [params, setParams] = useSearchParams()
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const filter = parseFilter(params)
  const statement = useStatement(filter)
  const set = (name: string, value: string) =>
    setParams(
      (before) => {
        const next = new URLSearchParams(before)
        next.delete('entry')
        if (value === '') next.delete(name)
        else next.set(name, value)
        return next
      },
      { replace: true },
    )
  const search = (text: string) => {
    clearTimeout(timer.current)
    timer.current = setTimeout(() => set('search', text.trim()), SEARCH_AFTER_MS)
  }
  const isFiltered = Object.keys(filter).length > 0
  const download = async () => {
    const cutAt = await downloadCsv(filter)
    if (cutAt !== null)
      toast(`The file holds the newest ${count(cutAt, 'entry', 'entries')}. Filter for the older ones.`)
  }
  return (
    <>
      <PageHead
        title="Activity"
        actions={
          <ActionButton icon="download" run={download} busy="Preparing">
            CSV
          </ActionButton>
        }
      >
        Everything that came in and went out, in one statement.
      </PageHead>
      <p class="only-print small">
        Statement of <bdi>{account.value?.displayName}</bdi>, printed {formatMoment(new Date().toISOString())}
        {isFiltered && ', filtered'}
        {statement.nextCursor !== null && `, the newest ${statement.entries.length} entries only`}. The CSV
        names every payee in full.
      </p>
      <div class="stack">
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot scroll sideways on a phone. */}
        <div class="filters" role="group" aria-label="Filters">
          <div class="search">
            <Icon name="search" small />
            <input
              class="input"
              type="search"
              maxLength={100}
              placeholder="Payee or memo"
              aria-label="Search the statement"
              defaultValue={params.get('search') ?? ''}
              onInput={(event) => search(event.currentTarget.value)}
            />
          </div>
          <Segments
            label="Direction"
            options={directions}
            value={filter.direction ?? ''}
            choose={(direction) => set('direction', direction)}
          />
          <FilterSelect
            label="Time"
            value={params.get('since') ?? ''}
            choose={(since) => set('since', since)}
            options={[
              ['', 'All time'],
              ['week', 'This week'],
              ['month', '30 days'],
              ['year', 'This year'],
            ]}
          />
          <AgentSelect value={filter.agentId ?? ''} choose={(agentId) => set('agentId', agentId)} />
          <FilterSelect
            label="Kind"
            value={filter.kind ?? ''}
            choose={(kind) => set('kind', kind)}
            options={[
              ['', 'Every kind'],
              ...Object.entries(kinds).map(([kind, { word }]) => [kind, word] as const),
            ]}
          />
          <FilterSelect
            label="Status"
            value={filter.status ?? ''}
            choose={(status) => set('status', status)}
            options={[
              ['', 'Every status'],
              ...statuses.map((status) => [status, nameStatus(status)] as const),
            ]}
          />
        </div>
        {/* Beside the other filters it could be out of sight on a phone. */}
        {filter.task !== undefined && (
          <button
            class="filter filter--own"
            type="button"
            aria-pressed="true"
            aria-label={`Task ${filter.task}: show all tasks`}
            onClick={() => set('task', '')}
          >
            <span class="trim">
              Task <Untrusted>{filter.task}</Untrusted>
            </span>
            <Icon name="close" small />
          </button>
        )}
        <section class="panel" aria-label="Statement">
          {statement.status === 'loading' && <SkeletonRows rows={6} />}
          {statement.status === 'failed' && (
            <Failed subject="The statement" error={statement.error} retry={statement.retry} />
          )}
          {statement.status === 'ready' && statement.entries.length === 0 && (
            <NoEntries isFiltered={isFiltered} clear={() => setParams({}, { replace: true })} />
          )}
          {statement.entries.length > 0 && (
            <>
              <div class="stmt stmt--head" aria-hidden="true">
                <span class="glyph" />
                <span>Payee</span>
                <span class="stmt__agent">By</span>
                <span>Status</span>
                <span class="stmt__amount">Amount</span>
                <span />
              </div>
              {groupByDay(statement.entries).map(({ day, entries }, position, all) => (
                <Day
                  key={day}
                  day={day}
                  entries={entries}
                  // The oldest day may go on with the next page.
                  isWhole={position < all.length - 1 || statement.nextCursor === null}
                  opened={params.get('entry')}
                />
              ))}
              {statement.nextCursor !== null && (
                <div class="panel__foot row row--wide">
                  <span class="num">{statement.entries.length} shown</span>
                  <ActionButton size="sm" run={statement.more} busy="Loading">
                    Show more
                  </ActionButton>
                </div>
              )}
            </>
          )}
        </section>
      </div>
    </>
  )
}

function parseFilter(params: URLSearchParams): StatementFilter {
  const [kind, direction, agentId] = [params.get('kind'), params.get('direction'), params.get('agentId')]
  const search = params.get('search')
  const task = params.get('task')
  const since = params.get('since')
  const status = statuses.find((one) => one === params.get('status'))
  const known = Object.keys(kinds).find((one): one is ActivityEntry['kind'] => one === kind)
  const days = since === 'week' || since === 'month' || since === 'year' ? periods[since] : null
  return {
    ...(known === undefined ? {} : { kind: known }),
    ...(direction === 'in' || direction === 'out' ? { direction } : {}),
    ...(status === undefined ? {} : { status }),
    ...(agentId === null ? {} : { agentId }),
    ...(task === null ? {} : { task }),
    ...(search === null ? {} : { search }),
    ...(days === null ? {} : { from: findStart(days) }),
  }
}

/** Midnight in the reader's zone so many days ago: the same text all day, so that the filter does not change. */
function findStart(days: number): string {
  const at = new Date(Date.now() - days * DAY_MS)
  at.setHours(0, 0, 0, 0)
  return at.toISOString()
}

function FilterSelect({
  label,
  value,
  options,
  choose,
}: {
  readonly label: string
  readonly value: string
  readonly options: readonly (readonly [value: string, words: string])[]
  readonly choose: (value: string) => void
}) {
  return (
    <select
      class={value === '' ? 'input select' : 'input select select--on'}
      aria-label={label}
      value={value}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      {options.map(([option, words]) => (
        <option key={option} value={option}>
          {words}
        </option>
      ))}
    </select>
  )
}

function AgentSelect({
  value,
  choose,
}: {
  readonly value: string
  readonly choose: (value: string) => void
}) {
  const keys = loadedValue(useResource(agents))?.keys ?? []
  const isKnown = value === '' || keys.some(({ agentId }) => agentId === value)
  return (
    <FilterSelect
      label="Agent"
      value={value}
      choose={choose}
      options={[
        ['', 'Everybody'],
        ...keys.map(({ agentId, name }) => [agentId, name] as const),
        ...(isKnown ? [] : [[value, 'One agent'] as const]),
      ]}
    />
  )
}

function NoEntries({ isFiltered, clear }: { readonly isFiltered: boolean; readonly clear: () => void }) {
  if (!isFiltered)
    return (
      <Empty icon="activity" title="Nothing has moved yet">
        Deposits, payments and purchases show here as they happen.
      </Empty>
    )
  return (
    <Empty
      icon="search"
      title="Nothing matches"
      action={
        <button class="btn" type="button" onClick={clear}>
          Clear filters
        </button>
      }
    >
      Look in all time, or take a filter away.
    </Empty>
  )
}

interface DayOfEntries {
  readonly day: string
  readonly entries: readonly ActivityEntry[]
}

/** Days of the reader's zone, newest first. */
function groupByDay(entries: readonly ActivityEntry[]): readonly DayOfEntries[] {
  const days = new Map<string, ActivityEntry[]>()
  for (const entry of entries) {
    const day = new Date(entry.at).toDateString()
    const before = days.get(day)
    if (before === undefined) days.set(day, [entry])
    else before.push(entry)
  }
  return [...days].map(([day, ofDay]) => ({ day, entries: ofDay }))
}

function Day({
  day,
  entries,
  isWhole,
  opened,
}: DayOfEntries & { readonly isWhole: boolean; readonly opened: string | null }) {
  const sum = (direction: 'in' | 'out') => sumUp(entries.filter((entry) => entry.direction === direction))
  const [inside, outside] = [sum('in'), sum('out')]
  return (
    <>
      <h2 class="daymark">
        <b>{nameDay(new Date(day))}</b>
        {isWhole && (
          <span class="row">
            {inside !== null && (
              <span class="amt amt--in">
                <span class="hide">In </span>+{inside}
              </span>
            )}
            {outside !== null && (
              <span class="amt">
                <span class="hide">Out </span>
                {'\u2212'}
                {outside}
              </span>
            )}
          </span>
        )}
      </h2>
      <ul class="rows">
        {entries.map((entry) => (
          <Entry key={entry.id} entry={entry} isOpened={entry.id === opened} />
        ))}
      </ul>
    </>
  )
}

/** Describes the money that moved: dollars, then assets without a rate. Null if nothing moved. */
function sumUp(entries: readonly ActivityEntry[]): string | null {
  const moved = entries.flatMap(({ usd, amount, asset }) => (amount === null ? [] : [{ usd, amount, asset }]))
  const { usd, unpriced } = sumWorth(moved)
  const parts = [
    ...(compareDecimals(usd, '0') > 0 ? [formatUsd(usd)] : []),
    ...unpriced.map(({ amount, asset }) => `${formatDecimal(amount)} ${asset}`),
  ]
  return parts.length === 0 ? null : parts.join(' + ')
}

function nameDay(day: Date): string {
  const date = day.toLocaleDateString(undefined, {
    ...digits,
    weekday: 'short',
    day: 'numeric',
    month: 'short',
  })
  const today = new Date()
  if (day.toDateString() === today.toDateString()) return `Today, ${date}`
  if (day.toDateString() === new Date(today.getTime() - DAY_MS).toDateString()) return `Yesterday, ${date}`
  return day.getFullYear() === today.getFullYear() ? date : `${date} ${day.getFullYear()}`
}

function Entry({ entry, isOpened }: { readonly entry: ActivityEntry; readonly isOpened: boolean }) {
  const [isOpen, setOpen] = useState(isOpened)
  const details = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    if (isOpened) details.current?.scrollIntoView({ block: 'nearest' })
  }, [isOpened])
  const agent = useAgentName(entry.agentId)
  const amount = shownAmount(entry)
  const beneath = wordsBeneath(entry)
  const clock = new Date(entry.at).toLocaleTimeString(undefined, {
    ...digits,
    hour: '2-digit',
    minute: '2-digit',
  })
  return (
    <li>
      <details ref={details} open={isOpened} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary class="stmt">
          <IconGlyph
            name={chooseIcon(entry)}
            kind={isVoid(entry) ? 'bad' : entry.direction === 'in' ? 'in' : undefined}
          />
          <span class="item__main">
            <span class="item__name">
              <span class="trim">
                <Untrusted>{titleEntry(entry)}</Untrusted>
              </span>
            </span>
            <span class="item__sub trim">
              {clock} ·{' '}
              {entry.task !== null && (
                <>
                  <Untrusted>{entry.task}</Untrusted>
                  {' · '}
                </>
              )}
              {describeKind(entry)}
              {entry.memo !== null && (
                <>
                  {' · “'}
                  <Untrusted>{entry.memo}</Untrusted>”
                </>
              )}
            </span>
          </span>
          <span class="stmt__agent row small soft">
            <By agentId={entry.agentId} agent={agent} entry={entry} />
          </span>
          <span class="stmt__state">
            <Status status={entry.status} />
          </span>
          <span class="stmt__amount">
            {amount === null ? (
              <span class="faint">unknown</span>
            ) : (
              <Amount
                amount={amount}
                asset={entry.asset}
                direction={entry.direction}
                isVoid={isVoid(entry)}
              />
            )}
            {beneath !== null && <small>{beneath}</small>}
          </span>
          <span class="stmt__mark">
            <Icon name="down" small />
          </span>
        </summary>
        {isOpen && <EntryDetails entry={entry} agent={agent} />}
      </details>
    </li>
  )
}

/** Beneath the amount: its worth, that it is held until the outcome is known, or that it was not paid after all. */
function wordsBeneath(entry: ActivityEntry): string | null {
  const { status, direction, usd, asset } = entry
  if (isVoid(entry)) return status === 'reversed' ? null : 'not paid'
  if (usd === null) return null
  const isHeld = direction === 'out' && status === 'pending'
  if (asset === 'USD') return isHeld ? 'held' : null
  return isHeld ? `${formatUsd(usd)} held` : formatUsd(usd)
}

function By({
  agentId,
  agent,
  entry,
}: {
  readonly agentId: string | null
  readonly agent: string | null
  readonly entry: ActivityEntry
}) {
  if (agentId !== null && agent !== null)
    return (
      <>
        <AgentGlyph id={agentId} name={agent} size="sm" />
        <span class="trim">
          <Untrusted>{agent}</Untrusted>
        </span>
      </>
    )
  if (entry.direction === 'in' || entry.decisionId === null) return null
  return (
    <>
      <span class="glyph glyph--sm glyph--round" aria-hidden="true">
        {extractInitials(account.value?.displayName ?? 'You')}
      </span>
      You
    </>
  )
}
