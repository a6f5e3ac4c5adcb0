/** Inbox of approvals: pending ones first, then decided ones. */
import { useEffect, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { Approval } from '../../client/operations.ts'
import { Amount } from '../components/amount.tsx'
import { describeAgreement, RequestMarks, useAskerName } from '../components/approval.tsx'
import { CallLine } from '../components/call.tsx'
import { ActionButton } from '../components/controls.tsx'
import type { IconName } from '../components/icon.tsx'
import { AgentGlyph, Chip, IconGlyph } from '../components/marks.tsx'
import { Banner, Empty, Failed, SkeletonRows, toast } from '../components/messages.tsx'
import { PageHead, Panel } from '../components/panel.tsx'
import { Untrusted } from '../components/quote.tsx'
import { useNow } from '../components/use-now.ts'
import { approvals, findAgent } from '../data/money.ts'
import { readPushState, switchPushOn } from '../data/push.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { describeCall, phraseCall } from '../words/calls.ts'
import { formatDecimal, formatUsd } from '../words/money.ts'
import { shortText } from '../words/plain-text.ts'
import { formatLeft, formatWhen } from '../words/time.ts'

export function ApprovalsPage() {
  const state = useResource(approvals)
  return (
    <>
      <PageHead title="Approvals">
        Agents wait here for your yes. Approving runs exactly that call, once.
      </PageHead>
      <PushOffer />
      {state.status === 'loading' && (
        <Panel>
          <SkeletonRows rows={4} />
        </Panel>
      )}
      {state.status === 'failed' && (
        <Panel>
          <Failed subject="The list of approvals" error={state.error} retry={approvals.reload} />
        </Panel>
      )}
      {state.status === 'ready' && <Inbox all={state.value.approvals} />}
    </>
  )
}

/** Offers push messages, where the browser has them and they are not on yet. */
function PushOffer() {
  const [isOffered, offer] = useState(false)
  useEffect(() => {
    void readPushState().then((push) => offer(push === 'off'))
  }, [])
  if (!isOffered) return null
  const turnOn = async () => {
    try {
      await switchPushOn()
      offer(false)
      toast('This browser is told from now on.')
    } catch {
      toast('Notifications could not be turned on. The browser may not allow them for this site.')
    }
  }
  return (
    <Banner
      icon="bell"
      action={
        <ActionButton size="sm" run={turnOn} busy="Turning on">
          Turn on notifications
        </ActionButton>
      }
    >
      Be told within seconds, even with this page closed.
    </Banner>
  )
}

function Inbox({ all }: { readonly all: readonly Approval[] }) {
  const now = useNow(true)
  const isOpen = ({ status, expiresAt }: Approval) =>
    status === 'pending' && Date.parse(expiresAt) > now.getTime()
  const open = all
    .filter(isOpen)
    .sort((one, other) => Date.parse(one.expiresAt) - Date.parse(other.expiresAt))
  const decided = all.filter((approval) => !isOpen(approval))
  return (
    <>
      {open.length === 0 ? (
        <Panel>
          <Empty icon="check" title="Nothing waits for you">
            When an agent needs your yes, it shows here.
          </Empty>
        </Panel>
      ) : (
        <section class="stack" aria-labelledby="open">
          <h2 id="open">{open.length === 1 ? '1 waits for you' : `${open.length} wait for you`}</h2>
          <ul class="stack">
            {open.map((approval, position) => (
              <OpenRequest key={approval.approvalId} approval={approval} isFirst={position === 0} now={now} />
            ))}
          </ul>
        </section>
      )}
      {decided.length > 0 && (
        <Panel title="Decided">
          <ul class="rows">
            {decided.map((approval) => (
              <DecidedRow key={approval.approvalId} approval={approval} />
            ))}
          </ul>
        </Panel>
      )}
    </>
  )
}

function OpenRequest({
  approval,
  isFirst,
  now,
}: {
  readonly approval: Approval
  readonly isFirst: boolean
  readonly now: Date
}) {
  const { agentId, approvalId, operation, input, expiresAt } = approval
  const facts = describeCall(operation, input)
  const name = useAskerName(approval)
  const usage = loadedValue(useResource(findAgent(agentId)))?.usage
  const agreement = describeAgreement(approval)
  return (
    <li class="panel">
      <div class="panel__body stack">
        <div class="row">
          <AgentGlyph id={agentId ?? approval.personId ?? ''} name={name} size="sm" />
          <span class="trim grow">
            <Untrusted>{name}</Untrusted>
          </span>
          <span class="small faint num">{formatLeft(expiresAt, now)}</span>
        </div>
        <p class="ask__line">
          <CallLine facts={facts} contact={approval.contact?.name ?? null} />
        </p>
        <div class="row row--wide row--wrap">
          <span class="row row--wrap">
            <RequestMarks approval={approval} />
            {agreement !== null && (
              <Chip kind="plain" icon="people">
                <Untrusted>{agreement}</Untrusted>
              </Chip>
            )}
            {usage?.remaining != null && (
              <span class="small faint num">{formatUsd(usage.remaining)} left today</span>
            )}
          </span>
          <Link
            class={`btn${isFirst ? ' btn--primary' : ''}`}
            href={`/approvals/${approvalId}`}
            aria-label={`Review: ${phraseCall(facts, formatDecimal)}`}
          >
            Review
          </Link>
        </div>
      </div>
    </li>
  )
}

/** Mark and words of each way that a request ended. */
function describeEnd(approval: Approval): {
  readonly icon: IconName
  readonly kind?: 'in' | 'bad'
  readonly words: string
} {
  const { status, problem, decidedAt, note } = approval
  const at = decidedAt === null ? '' : ` at ${formatWhen(decidedAt)}`
  if (status === 'approved' && problem !== null)
    return { icon: 'warning', kind: 'bad', words: `you approved${at}, but it failed` }
  if (status === 'approved') return { icon: 'check', kind: 'in', words: `you approved${at}` }
  if (status === 'rejected')
    return {
      icon: 'close',
      kind: 'bad',
      words: `you rejected${note === null ? at : `: “${shortText(note)}”`}`,
    }
  if (status === 'withdrawn') return { icon: 'return', words: 'withdrew its request' }
  return { icon: 'clock', words: 'was not answered in time' }
}

function DecidedRow({ approval }: { readonly approval: Approval }) {
  const { approvalId, operation, input, decidedAt, expiresAt } = approval
  const facts = describeCall(operation, input)
  const name = useAskerName(approval)
  const { icon, kind, words } = describeEnd(approval)
  const isPaid = approval.status === 'approved' && approval.problem === null
  return (
    <li>
      <Link class="item" href={`/approvals/${approvalId}`}>
        <IconGlyph name={icon} kind={kind} />
        <span class="item__main">
          <span class="item__name">
            <span class="trim">
              <CallLine facts={{ ...facts, amount: null }} contact={approval.contact?.name ?? null} />
            </span>
          </span>
          <span class="item__sub wrap">
            <Untrusted>{name}</Untrusted> · {words}
          </span>
        </span>
        <span class="item__end">
          {facts.amount !== null && (
            <Amount
              amount={facts.amount}
              {...(facts.asset === null ? {} : { asset: facts.asset })}
              isVoid={!isPaid}
            />
          )}
          <span class="small faint">{formatWhen(decidedAt ?? expiresAt)}</span>
        </span>
      </Link>
    </li>
  )
}
