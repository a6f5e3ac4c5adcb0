/** One request of an agent: what would run, what it means for the budget, and the person's answer. */

import { useEffect, useRef, useState } from 'preact/hooks'
import { Link, useParams } from 'wouter-preact'
import type { Approval, Decision } from '../../client/operations.ts'
import { describeAgreement, useAskerName, useObstacle } from '../components/approval.tsx'
import { Burn } from '../components/burn.tsx'
import { FirstTime, FullAddress } from '../components/call.tsx'
import { ActionButton, Dialog, DialogButtons, Field } from '../components/controls.tsx'
import { DecisionView } from '../components/decision.tsx'
import { Icon, type IconName } from '../components/icon.tsx'
import { AgentGlyph } from '../components/marks.tsx'
import { Banner } from '../components/messages.tsx'
import { MissingObject } from '../components/missing.tsx'
import { useTitle } from '../components/panel.tsx'
import { Quote, Untrusted } from '../components/quote.tsx'
import { Receipt } from '../components/receipt.tsx'
import { waiting } from '../components/shell.tsx'
import { useNow } from '../components/use-now.ts'
import { deployment } from '../data/account.ts'
import { bursar, withProof } from '../data/gateway.ts'
import {
  agentById,
  approvalById,
  approvals,
  decisionsById,
  findAgent,
  findDecision,
  recipients,
} from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { type CallFacts, describeCall, listMembers, phraseCall, writeCallSentence } from '../words/calls.ts'
import { describeMove } from '../words/funding.ts'
import { addDecimals, compareDecimals, formatDecimal, formatUsd, subtractDecimals } from '../words/money.ts'
import { nameChain } from '../words/names.ts'
import { plainText } from '../words/plain-text.ts'
import { capital, describeAskReason, describeViolation } from '../words/policy.ts'
import { formatLeft, formatMoment, formatWhen } from '../words/time.ts'

export function ApprovalPage() {
  const { id = '' } = useParams<{ id: string }>()
  return <Loaded key={id} id={id} />
}

function Loaded({ id }: { readonly id: string }) {
  const source = approvalById(id)
  const state = useResource(source)
  const loaded = loadedValue(state)
  useTitle(
    loaded === undefined
      ? 'Approval'
      : capital(writeCallSentence(describeCall(loaded.operation, loaded.input))),
  )
  if (state.status !== 'ready')
    return (
      <MissingObject
        state={state}
        noun="approval"
        subject="The request"
        list={{ path: '/approvals', name: 'Approvals' }}
        retry={source.reload}
      />
    )
  return <Request approval={state.value} />
}

function Request({ approval }: { readonly approval: Approval }) {
  const now = useNow(approval.status === 'pending')
  const [isOwnAnswer, setOwnAnswer] = useState(false)
  const isOver = Date.parse(approval.expiresAt) <= now.getTime()
  const sendDecision = async (decision: 'approve' | 'reject', note?: string) => {
    const call = () =>
      bursar.approvals.decide({
        id: approval.approvalId,
        decision,
        ...(note === undefined || note === '' ? {} : { note }),
      })
    try {
      const outcome = await (decision === 'approve' ? withProof(call) : call())
      setOwnAnswer(true)
      approvalById(approval.approvalId).put(outcome)
    } finally {
      // Another browser, or the agent, may have been first.
      void approvals.reload()
      void approvalById(approval.approvalId).reload()
    }
    if (approval.agentId === null) return
    void agentById(approval.agentId).reload()
    void decisionsById(approval.agentId).reload()
  }
  // The gateway decides if the time is over: it may have approved in the last second.
  const mayBeOver = approval.status === 'pending' && isOver
  useEffect(() => {
    if (!mayBeOver) return
    const reload = () => void approvalById(approval.approvalId).reload()
    reload()
    const timer = setInterval(reload, RUNNING_POLL_MS)
    return () => clearInterval(timer)
  }, [mayBeOver, approval.approvalId])
  if (approval.status === 'pending') return <Asking approval={approval} now={now} answer={sendDecision} />
  return <Outcome approval={approval} isOwnAnswer={isOwnAnswer} />
}

function Asking({
  approval,
  now,
  answer,
}: {
  readonly approval: Approval
  readonly now: Date
  readonly answer: (decision: 'approve' | 'reject', note?: string) => Promise<void>
}) {
  const [isRejecting, setRejecting] = useState(false)
  const { agentId, operation, input, reason, violations, expiresAt } = approval
  const decision = loadedValue(useResource(findDecision(approval.decisionId)))
  const facts = withDecided(describeCall(operation, input), decision)
  const name = useAskerName(approval)
  const agreement = describeAgreement(approval)
  const obstacle = useObstacle(approval)
  return (
    <>
      <section class="panel">
        <div class="panel__body ask">
          <div class="row row--wide">
            <span class="row trim">
              <AgentGlyph id={agentId ?? approval.personId ?? ''} name={name} size="sm" />
              <Link class="trim" href={agentId === null ? '/people' : `/agents/${agentId}`}>
                <Untrusted>{name}</Untrusted>
              </Link>
            </span>
            <span class="small faint num row">
              <Icon name="clock" small />
              {formatLeft(expiresAt, now)}
            </span>
          </div>
          <Says name={name} facts={facts} usd={decision?.usd ?? null} />
          <Payee approval={approval} facts={facts} chain={decision?.chain ?? null} />
          <MovesFirst approval={approval} />
          {violations.length > 0 && (
            <div class="banner banner--bad">
              <Icon name="warning" />
              <div class="grow">
                <p class="strong">The policy of this agent denies the call.</p>
                <ul class="rules" id="violations">
                  {violations.map((violation) => (
                    <li key={violation.rule}>{capital(describeViolation(violation))}.</li>
                  ))}
                </ul>
                <p class="small">Approving makes one exception. The policy stays as it is.</p>
              </div>
            </div>
          )}
          {(agreement !== null || obstacle !== null) && (
            <Banner icon="people">
              <div id="agreement">
                {agreement !== null && (
                  <p class="strong">
                    <Untrusted>{agreement}</Untrusted>
                  </p>
                )}
                {obstacle !== null && <p>{obstacle}</p>}
              </div>
            </Banner>
          )}
          <LeftOfBudget agentId={agentId} usd={decision?.usd ?? null} />
          <UsesUp approval={approval} />
          <PolicyChanges approval={approval} />
          {reason !== null && (
            <Quote by="Its reason, in its own words. Not checked by Bursar.">{reason}</Quote>
          )}
          <Details approval={approval} />
          <div class="ask__buttons ask__buttons--dock">
            <ActionButton
              kind="primary"
              size="lg"
              icon="check"
              run={() => answer('approve')}
              busy="Approving"
              disabled={obstacle !== null}
            >
              Approve
            </ActionButton>
            <button class="btn btn--lg" type="button" onClick={() => setRejecting(true)}>
              Reject
            </button>
          </div>
        </div>
      </section>
      <p class="small faint">
        {isPurchase(approval)
          ? 'The purchase was declined. Approving lets it be tried again once, within 15 minutes, for at most this amount.'
          : approval.decisionId === null
            ? 'Approving makes this change, as shown, in your name.'
            : agentId === null
              ? 'Once enough have agreed, the person makes the payment themselves, exactly as shown.'
              : 'Approving runs this call once, as shown. With anything changed it asks again.'}
      </p>
      {isRejecting && (
        <RejectDialog
          name={name}
          facts={facts}
          close={() => setRejecting(false)}
          reject={(note) => answer('reject', note)}
        />
      )}
    </>
  )
}

/** The amount of the decision, where the call names none: a payout by its quote, or by what arrives. */
function withDecided(facts: CallFacts, decision: Decision | undefined): CallFacts {
  if (facts.amount !== null || facts.partyKind !== 'recipient' || decision === undefined) return facts
  return { ...facts, amount: decision.amount, asset: decision.asset }
}

/** The sentence, with the amount as the largest thing of the page. */
function Says({
  name,
  facts,
  usd,
}: {
  readonly name: string
  readonly facts: CallFacts
  readonly usd: string | null
}) {
  const { verb, amount, asset } = facts
  return (
    <div class="ask__says">
      <h1 class="hide">
        {name} wants to {writeCallSentence(facts)}
      </h1>
      <p aria-hidden="true">
        <b>
          <Untrusted>{name}</Untrusted>
        </b>{' '}
        wants to {verb}
      </p>
      {amount !== null && (
        <div class="ask__amount" aria-hidden="true">
          {formatDecimal(amount)} <small>{asset}</small>
        </div>
      )}
      {usd !== null && <p class="small num">{formatUsd(usd)}</p>}
    </div>
  )
}

const parties: Readonly<Record<CallFacts['partyKind'], readonly [name: string, icon: IconName]>> = {
  address: ['Address', 'out'],
  website: ['Website', 'cart'],
  merchant: ['Merchant', 'card'],
  ticker: ['Ticker', 'invest'],
  recipient: ['Bank recipient', 'bank'],
  none: ['', 'out'],
}

function Payee({
  approval,
  facts,
  chain,
}: {
  readonly approval: Approval
  readonly facts: CallFacts
  readonly chain: string | null
}) {
  const { party, partyKind, detail } = facts
  const saved = useResource(recipients)
  if (party === null && detail === null) return null
  const [title, icon] = parties[partyKind]
  const isNew = approval.violations.some(({ rule }) => rule === 'new_payee_cooldown')
  const known = loadedValue(saved)?.recipients.find(({ id }) => id === party && partyKind === 'recipient')
  return (
    <div class="party">
      <span class="glyph glyph--4" aria-hidden="true">
        <Icon name={icon} small />
      </span>
      <div class="grow stack stack--tight">
        <div class="row row--wide row--wrap">
          <span class="strong">{title}</span>
          {isNew && <FirstTime />}
        </div>
        {known !== undefined && (
          <p>
            <Untrusted>{known.name ?? 'Erased'}</Untrusted>{' '}
            <span class="small soft">
              {known.currency} · {known.country} •• {known.last4}
            </span>
          </p>
        )}
        {approval.contact?.name != null && (
          <p class="strong">
            <Untrusted>{approval.contact.name}</Untrusted>
          </p>
        )}
        {party !== null && <FullAddress address={party} />}
        {approval.contact?.isChanged === true && (
          <p class="banner banner--bad">This contact was changed or removed since. Approving pays nobody.</p>
        )}
        {detail !== null && (
          <p class="small soft wrap">
            <Untrusted>{detail}</Untrusted>
          </p>
        )}
        {chain !== null && <p class="small faint">{nameChain(chain)}</p>}
      </div>
    </div>
  )
}

/** Tells the owner which money moves from another chain before the payment, and at what cost. */
function MovesFirst({ approval: { funding } }: { readonly approval: Approval }) {
  const [step] = funding?.steps ?? []
  if (funding === undefined || step === undefined) return null
  return (
    <Banner icon="branch">
      <p id="moves-first" class="num">
        {describeMove({ ...step, ...funding })}
      </p>
    </Banner>
  )
}

/** Remaining budget of the day, now and after this call. */
function LeftOfBudget({ agentId, usd }: { readonly agentId: string | null; readonly usd: string | null }) {
  const usage = loadedValue(useResource(findAgent(agentId)))?.usage
  if (usage?.remaining == null || usd === null) return null
  const { remaining, used } = usage
  const limit = addDecimals(used, remaining)
  const isOver = compareDecimals(usd, remaining) > 0
  const after = isOver ? '0' : subtractDecimals(remaining, usd)
  const over = isOver ? subtractDecimals(usd, remaining) : null
  const label = `${formatUsd(remaining)} of ${formatUsd(limit)} left today, ${over === null ? `${formatUsd(after)} after this` : `${formatUsd(over)} too little for this`}`
  return (
    <Burn
      left={after}
      held={subtractDecimals(remaining, after)}
      limit={limit}
      isBig
      label={label}
      words={<>Left of today’s {formatUsd(limit)}</>}
      end={
        <span class="num soft">
          <b>{formatUsd(remaining)}</b> now,{' '}
          {over === null ? (
            <>
              <b>{formatUsd(after)}</b> after
            </>
          ) : (
            <>{formatUsd(over)} over after</>
          )}
        </span>
      }
    />
  )
}

/** Warns that the agent can spend nothing else until a budget resets. */
function UsesUp({ approval: { usesUp = [] } }: { readonly approval: Approval }) {
  if (usesUp.length === 0) return null
  return (
    <Banner kind="warn" icon="warning">
      <div id="uses-up">
        {usesUp.map(({ period, left, resetsAt }) => (
          <p key={period}>
            It uses up the budget of the {period}: {formatUsd(left)} is left, and nothing after it until{' '}
            {formatMoment(resetsAt)}.
          </p>
        ))}
      </div>
    </Banner>
  )
}

/** Members of the policy that an agent asks for, where they differ from those that it has. */
function PolicyChanges({ approval: { agentId, operation, input } }: { readonly approval: Approval }) {
  const policy = loadedValue(useResource(findAgent(agentId)))?.policy
  if (operation !== 'agents.policy' || policy === undefined) return null
  const mapValues = (members: Readonly<Record<string, unknown>>) =>
    new Map(listMembers(operation, members, '').map(({ label, value }) => [label, value]))
  const [before, after] = [mapValues({ policy }), mapValues({ policy: input.policy })]
  const differing = [...new Set([...before.keys(), ...after.keys()])].filter(
    (label) => before.get(label) !== after.get(label),
  )
  return (
    <dl class="facts" id="policy-changes" aria-label="What changes in the policy">
      {differing.flatMap((label) => [
        <dt key={label}>{label.replace(/^Policy, /, '')}</dt>,
        <dd key={`${label} value`} class="wrap">
          <Untrusted>{before.get(label) ?? 'none'}</Untrusted> →{' '}
          <b>
            <Untrusted>{after.get(label) ?? 'none'}</Untrusted>
          </b>
        </dd>,
      ])}
    </dl>
  )
}

/** Why it asks, and every member of the call. */
function Details({ approval }: { readonly approval: Approval }) {
  const { operation, input, violations, createdAt, decisionId, agentId } = approval
  const policy = loadedValue(useResource(findAgent(agentId)))?.policy ?? null
  const decision = loadedValue(useResource(findDecision(decisionId)))
  return (
    <details class="fold" open={decisionId === null}>
      <summary class="linkbtn small">Why it asks, and exactly what would run</summary>
      <div class="stack">
        <dl class="facts">
          <dt>Why</dt>
          <dd>
            {violations.length > 0
              ? 'It is denied by the policy, and the agent asks for one exception'
              : decisionId === null
                ? 'Only you can make this change'
                : describeAskReason(policy)}
          </dd>
          <dt>Call</dt>
          <dd class="mono small" id="operation">
            <Untrusted>{plainText(operation)}</Untrusted>
          </dd>
        </dl>
        <dl class="facts" id="call" aria-label="Exactly what would run">
          {listMembers(operation, input, deployment.chain).flatMap(({ label, value, isGiven }, position) => [
            <dt key={`name ${position}`}>{label}</dt>,
            <dd key={position} class="wrap">
              <Untrusted>{value}</Untrusted>
              {!isGiven && <span class="faint"> by default</span>}
            </dd>,
          ])}
        </dl>
        <dl class="facts">
          <dt>Asked</dt>
          <dd>{formatMoment(createdAt)}</dd>
        </dl>
        {decision !== undefined && (
          <>
            <h3>The decision</h3>
            <DecisionView decision={decision} />
          </>
        )}
      </div>
    </details>
  )
}

function RejectDialog({
  name,
  facts,
  close,
  reject,
}: {
  readonly name: string
  readonly facts: CallFacts
  readonly close: () => void
  readonly reject: (note: string) => Promise<void>
}) {
  const [note, setNote] = useState('')
  const subject =
    facts.amount === null ? 'this' : `${formatDecimal(facts.amount)} ${facts.asset ?? ''}`.trim()
  return (
    <Dialog title={`Reject ${subject}?`} close={close}>
      <Field
        label={
          <>
            Note to the agent <span class="faint">(optional)</span>
          </>
        }
        hint={
          <>
            <Untrusted>{name}</Untrusted> reads it and can act on it.
          </>
        }
      >
        {(props) => (
          <textarea
            class="input"
            maxLength={500}
            value={note}
            onInput={(event) => setNote(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <DialogButtons close={close} leave="Back">
        <ActionButton kind="primary" run={() => reject(note.trim())} busy="Rejecting">
          Reject
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

interface Ending {
  readonly title: string
  readonly words: string
  readonly icon: IconName
  readonly isGood: boolean
}

/** A declined card purchase: approving it runs nothing, its card tries it again. */
function isPurchase({ operation }: Approval): boolean {
  return operation === 'cards.authorize'
}

/** Answers of calls that had not ended when they were answered. */
const openWords: ReadonlyMap<string, string> = new Map([
  ['settlement_pending', 'it is sent and not yet confirmed'],
  [
    'funding',
    'its money comes from another chain, and it is paid as soon as that is there. Activity shows when',
  ],
  ['submitted', 'it is sent and not yet confirmed'],
  ['bridging', 'it has left one chain, and arrives on the other by itself. Activity shows when'],
])

/** The outcome in words. A call that is still running has neither answer nor problem. */
function describeEnding(approval: Approval, facts: CallFacts, name: string, now: Date): Ending {
  const { status, answer, problem, decidedAt } = approval
  const when = decidedAt === null ? '' : ` ${formatWhen(decidedAt)}`
  if (status === 'approved' && isPurchase(approval)) return describePurchaseEnding(approval, facts, now)
  if (status === 'approved' && problem !== null)
    return {
      title: 'Approved, but it failed',
      words: describeProblem(problem),
      icon: 'warning',
      isGood: false,
    }
  if (status === 'approved' && answer === null)
    return {
      title: 'Approved',
      words: 'The call is running. Its answer shows here.',
      icon: 'clock',
      isGood: true,
    }
  if (status === 'approved') {
    const open = openWords.get(String(answer?.status))
    return {
      title: open === undefined ? 'Approved and completed' : 'Approved, and on its way',
      words: `${capital(phraseCall(facts, formatDecimal))}: ${open ?? 'it is done'}.`,
      icon: 'check',
      isGood: true,
    }
  }
  if (status === 'rejected')
    return {
      title: 'Rejected',
      words: `The call was not made. ${name} is told.`,
      icon: 'close',
      isGood: false,
    }
  if (status === 'withdrawn')
    return {
      title: 'Withdrawn',
      words: `${name} took its request back${when}. The call was not made.`,
      icon: 'return',
      isGood: false,
    }
  return {
    title: 'Expired',
    words: `The time to answer ended ${formatWhen(approval.expiresAt)}. The call was not made. ${name} can ask again.`,
    icon: 'clock',
    isGood: false,
  }
}

/** How long an approved purchase may be tried again. */
const RETRY_MS = 15 * 60_000

function describePurchaseEnding(
  { answer, problem, decidedAt }: Approval,
  facts: CallFacts,
  now: Date,
): Ending {
  if (answer !== null)
    return {
      title: 'Approved and completed',
      words: `${capital(phraseCall(facts, formatDecimal))}: the purchase was tried again and approved.`,
      icon: 'check',
      isGood: true,
    }
  const isOver = decidedAt !== null && Date.parse(decidedAt) + RETRY_MS <= now.getTime()
  if (problem !== null || isOver)
    return {
      title: 'Approved, but not used',
      words:
        problem === null ? 'The purchase was not tried again within 15 minutes.' : describeProblem(problem),
      icon: 'clock',
      isGood: false,
    }
  return {
    title: 'Approved',
    words: 'Approved. Try the purchase again within 15 minutes.',
    icon: 'clock',
    isGood: true,
  }
}

function describeProblem(problem: Readonly<Record<string, unknown>>): string {
  const { detail, title } = problem
  if (typeof detail === 'string') return plainText(detail)
  return typeof title === 'string' ? plainText(title) : 'The call did not succeed.'
}

/** The end of a running call has an event of its own kind, not of the approval. */
const RUNNING_POLL_MS = 2_000

function Outcome({ approval, isOwnAnswer }: { readonly approval: Approval; readonly isOwnAnswer: boolean }) {
  const heading = useRef<HTMLHeadingElement>(null)
  const facts = describeCall(approval.operation, approval.input)
  const name = useAskerName(approval)
  const isRunning = approval.status === 'approved' && approval.answer === null && approval.problem === null
  const now = useNow(isRunning)
  const { title, words, icon, isGood } = describeEnding(approval, facts, name, now)
  useEffect(() => {
    if (isOwnAnswer) heading.current?.focus()
  }, [isOwnAnswer, title])
  useEffect(() => {
    if (!isRunning) return
    const timer = setInterval(() => void approvalById(approval.approvalId).reload(), RUNNING_POLL_MS)
    return () => clearInterval(timer)
  }, [isRunning, approval.approvalId])
  const { note, reason, agentId } = approval
  const left = waiting.value
  return (
    <section class="panel">
      <div class="panel__body ask">
        <div class="done">
          <span class={isGood ? 'done__mark' : 'done__mark done__mark--no'}>
            <Icon name={icon} />
          </span>
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          <p class="soft wrap">{words}</p>
        </div>
        <OutcomeFacts approval={approval} facts={facts} />
        {note !== null && (
          <Quote by="Your note" isOwn>
            {note}
          </Quote>
        )}
        {reason !== null && <Quote by="Its reason, in its own words. Not checked by Bursar.">{reason}</Quote>}
        <Details approval={approval} />
        <div class="row row--wrap">
          {approval.status === 'rejected' ? (
            <Link class="btn grow" href={agentId === null ? '/people' : `/agents/${agentId}`}>
              {agentId === null ? 'See the people' : 'See the agent'}
            </Link>
          ) : (
            <Link class="btn grow" href="/activity">
              See it in activity
            </Link>
          )}
          <Link class="btn btn--primary grow" href="/approvals">
            {left === 0 ? 'All approvals' : `Next: ${left} ${left === 1 ? 'waits' : 'wait'}`}
          </Link>
        </div>
      </div>
    </section>
  )
}

function OutcomeFacts({ approval, facts }: { readonly approval: Approval; readonly facts: CallFacts }) {
  const { answer, decidedAt, status, agentId } = approval
  const usage = loadedValue(useResource(findAgent(agentId)))?.usage
  const ran = readText(answer, 'decisionId') ?? approval.decisionId
  const decision = loadedValue(useResource(findDecision(ran)))
  const usedAt = readText(answer, 'usedAt')
  const hash = readText(answer, 'transactionHash') ?? readText(answer, 'transaction')
  return (
    <dl class="facts facts--end">
      {facts.amount !== null && (
        <>
          <dt>Amount</dt>
          <dd>
            {formatDecimal(facts.amount)} {facts.asset}
          </dd>
        </>
      )}
      {facts.party !== null && (
        <>
          <dt>{capital(facts.preposition)}</dt>
          <dd>
            <FullAddress address={facts.party} />
          </dd>
        </>
      )}
      {decidedAt !== null && (
        <>
          <dt>{status === 'approved' ? 'Approved' : status === 'rejected' ? 'Rejected' : 'Ended'}</dt>
          <dd>{formatMoment(decidedAt)}</dd>
        </>
      )}
      {isPurchase(approval) && usedAt !== null && (
        <>
          <dt>Used</dt>
          <dd>{formatMoment(usedAt)}</dd>
        </>
      )}
      {usage?.remaining != null && (
        <>
          <dt>Left today</dt>
          <dd>
            {formatUsd(usage.remaining)} of {formatUsd(addDecimals(usage.used, usage.remaining))}
          </dd>
        </>
      )}
      {hash !== null && (
        <>
          <dt>Transaction</dt>
          <dd class="mono small wrap">{hash}</dd>
        </>
      )}
      {decision !== undefined && (
        <>
          <dt>Receipt</dt>
          <dd>
            <Receipt decisionId={decision.decisionId} receipt={decision.receipt} />
          </dd>
        </>
      )}
    </dl>
  )
}

function readText(answer: Readonly<Record<string, unknown>> | null, name: string): string | null {
  const value = answer?.[name]
  return typeof value === 'string' && value !== '' ? plainText(value) : null
}
