/** What leaves again and again: the due times of the next 30 days, and a switch for each schedule. */
import type { Schedule } from '../../client/operations.ts'
import { Amount } from '../components/amount.tsx'
import { ActionButton, Setting } from '../components/controls.tsx'
import { IconGlyph, Status } from '../components/marks.tsx'
import { Empty, toast } from '../components/messages.tsx'
import { NotReady } from '../components/not-ready.tsx'
import { Columns, PageHead, Panel } from '../components/panel.tsx'
import { bursar, withProof } from '../data/gateway.ts'
import { agents, schedules } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { type CallFacts, describeCall, describeRhythm, writeCallSentence } from '../words/calls.ts'
import { count } from '../words/names.ts'
import { formatDay, formatMoment } from '../words/time.ts'

/** Due times that are shown; more are counted. */
const MAX_DUE = 40

export function SchedulesPage() {
  const state = useResource(schedules)
  const all = loadedValue(state)?.schedules ?? []
  const open = all.filter(({ status }) => status !== 'ended')
  const ended = all.filter(({ status }) => status === 'ended')
  return (
    <>
      <PageHead title="Schedules">What leaves again and again, until you switch it off.</PageHead>
      <NotReady state={state} subject="The list of schedules" retry={schedules.reload} />
      {state.status === 'ready' && all.length === 0 && (
        <Panel>
          <Empty icon="clock" title="Nothing is scheduled">
            An agent asks you once for rent, a salary or a subscription, and then it is paid on its days.
          </Empty>
        </Panel>
      )}
      {all.length > 0 && (
        <Columns
          main={<Upcoming schedules={open} />}
          side={
            <>
              {open.map((schedule) => (
                <ScheduleCard key={schedule.scheduleId} schedule={schedule} />
              ))}
              {ended.length > 0 && <Ended schedules={ended} />}
            </>
          }
        />
      )}
    </>
  )
}

const capitalize = (words: string) => words.charAt(0).toUpperCase() + words.slice(1)

/** The facts of its calls, with the name of the contact in place of the address. */
function describe({ operation, input, contact }: Schedule): CallFacts {
  const facts = describeCall(operation, input)
  return contact === null ? facts : { ...facts, party: contact, partyKind: 'recipient' }
}

function Upcoming({ schedules: open }: { readonly schedules: readonly Schedule[] }) {
  const due = open
    .flatMap((schedule) => schedule.upcoming.map((at) => ({ at, schedule })))
    .sort((one, other) => one.at.localeCompare(other.at))
  return (
    <Panel
      title="The next 30 days"
      foot={due.length > MAX_DUE ? `${due.length - MAX_DUE} more are due.` : null}
    >
      {due.length === 0 ? (
        <Empty icon="clock" title="Nothing is due">
          No schedule that is switched on pays within 30 days.
        </Empty>
      ) : (
        <ul class="rows">
          {due.slice(0, MAX_DUE).map(({ at, schedule }) => {
            const facts = describe(schedule)
            return (
              <li class="item" key={`${schedule.scheduleId} ${at}`}>
                <IconGlyph name="out" />
                <span class="item__main">
                  <span class="item__name">
                    <span class="trim">{capitalize(writeCallSentence({ ...facts, amount: null }))}</span>
                  </span>
                  <span class="item__sub">
                    <time dateTime={at} title={formatMoment(at)}>
                      {formatDay(at)}
                    </time>
                  </span>
                </span>
                {facts.amount !== null && (
                  <Amount amount={facts.amount} asset={facts.asset ?? ''} direction="out" />
                )}
              </li>
            )
          })}
        </ul>
      )}
    </Panel>
  )
}

function ScheduleCard({ schedule }: { readonly schedule: Schedule }) {
  const { scheduleId: id, status, every, nextAt, left, agentId, runs } = schedule
  const facts = describe(schedule)
  const [latest] = runs
  const set = async (wish: 'active' | 'paused' | 'ended') => {
    await withProof(() => bursar.schedules.update({ id, status: wish }))
    await schedules.reload()
  }
  const end = async () => {
    await set('ended')
    toast('The schedule has ended.')
  }
  return (
    <Panel>
      <div class="panel__body stack">
        <Setting
          label={
            <span class="wrap" title={facts.party ?? undefined}>
              {capitalize(writeCallSentence(facts))}
            </span>
          }
          hint={`${describeRhythm(every.unit, every)}${nextAt === null ? '' : `, next on ${formatDay(nextAt)}`}${
            left === null ? '' : `, ${count(left, 'time')} left`
          }.`}
          isOn={status === 'active'}
          change={(isOn) => set(isOn ? 'active' : 'paused')}
        />
        {status === 'failing' && (
          <p class="small">
            {latest?.reason === 'payee_changed'
              ? 'Its contact was changed or removed, so that it pays nobody. End it, and make another.'
              : `Its last three runs failed (${latest?.reason ?? 'unknown'}). Switch it on to go on.`}
          </p>
        )}
        <p class="small faint row">
          <By agentId={agentId} />
          {latest !== undefined && (
            <span>
              {formatDay(latest.at)}: {latest.status}
              {latest.reason === null || latest.status === 'completed' ? '' : ` (${latest.reason})`}
            </span>
          )}
        </p>
        <div class="row">
          <ActionButton
            run={end}
            kind="stopline"
            size="sm"
            busy="Ending …"
            label={`End: ${writeCallSentence(facts)}`}
          >
            End it
          </ActionButton>
        </div>
      </div>
    </Panel>
  )
}

function By({ agentId }: { readonly agentId: string | null }) {
  const keys = loadedValue(useResource(agents))?.keys ?? []
  if (agentId === null) return <span>By you.</span>
  return (
    <span>
      By <bdi>{keys.find((key) => key.agentId === agentId)?.name ?? 'a key that has ended'}</bdi>.
    </span>
  )
}

function Ended({ schedules: ended }: { readonly schedules: readonly Schedule[] }) {
  return (
    <Panel title="Ended">
      <ul class="rows">
        {ended.map((schedule) => (
          <li class="item" key={schedule.scheduleId}>
            <span class="item__main">
              <span class="item__name">
                <span class="trim">{capitalize(writeCallSentence(describe(schedule)))}</span>
              </span>
              <span class="item__sub">
                {schedule.runs[0] === undefined
                  ? 'It never ran.'
                  : `Last run on ${formatDay(schedule.runs[0].at)}`}
              </span>
            </span>
            <Status status="ended" />
          </li>
        ))}
      </ul>
    </Panel>
  )
}
