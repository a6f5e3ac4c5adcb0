/** A request for approval. The person decides on the gateway's page, signed in, and nowhere else. */
import { useEffect, useState } from 'preact/hooks'
import { FullAddress } from '../components/call.tsx'
import { Chip, type ChipKind } from '../components/marks.tsx'
import { Quote, Untrusted } from '../components/quote.tsx'
import { useNow } from '../components/use-now.ts'
import { describeCall, writeCallSentence } from '../words/calls.ts'
import { describeMove } from '../words/funding.ts'
import { formatDecimal } from '../words/money.ts'
import { plainText, shortText } from '../words/plain-text.ts'
import { capital } from '../words/policy.ts'
import { formatLeft } from '../words/time.ts'
import { given, type Members, outcome, readAgain } from './host.ts'
import { readRecord, readText } from './members.ts'
import { BrokenRules, PageButton, Refused, Unanswered, View } from './panel.tsx'

const POLL_MS = 5_000

export function ApprovalView() {
  const { value } = outcome
  if (value.status === 'failed' && readText(value.problem, 'approvalId') === null)
    return <Refused problem={value.problem} title="There is nothing to approve" />
  if (value.status === 'answered') return <ApprovalPanel first={value.answer} />
  return value.status === 'failed' ? <ApprovalPanel first={value.problem} /> : <Unanswered doing="Asking" />
}

const ends: Readonly<Record<string, readonly [words: string, kind: ChipKind]>> = {
  pending: ['Waits for your yes', 'warn'],
  approved: ['Approved', 'good'],
  rejected: ['Rejected', 'bad'],
  withdrawn: ['Withdrawn', 'plain'],
  expired: ['Nobody answered in time', 'plain'],
}

/**
 * One request for approval. @param first the answer that named it: an approval, the request for one, or the problem of a
 * call that needs one. @param operation that was called, where the answer does not say
 */
export function ApprovalPanel({
  first,
  operation: called,
}: {
  readonly first: Members
  readonly operation?: string
}) {
  const id = readText(first, 'approvalId') ?? ''
  const [shown, setShown] = useState(first)
  const status = readText(shown, 'status') ?? 'pending'
  const isPending = status === 'pending'
  const now = useNow(isPending)
  useEffect(() => {
    if (!isPending || id === '') return
    const look = async () => {
      const read = await readAgain('approvals_get', { id })
      if (read !== undefined) setShown(read)
    }
    // The problem of a call names neither its input nor its deadline.
    void look()
    const timer = setInterval(() => void look(), POLL_MS)
    return () => clearInterval(timer)
  }, [id, isPending])
  const asked = called === undefined ? given.value : { operation: called, input: given.value }
  const operation = readText(shown, 'operation') ?? readText(asked, 'operation')?.replaceAll('_', '.') ?? null
  const input = readRecord(shown.input ?? asked.input)
  const reason = readText(shown, 'reason') ?? readText(asked, 'reason')
  const expiresAt = readText(shown, 'expiresAt')
  const contact = readRecord(shown.contact)
  const [words, kind] = ends[status] ?? [plainText(status), 'plain' as const]
  return (
    <View>
      <div class="row row--wide row--wrap">
        <Chip kind={kind}>{words}</Chip>
        {isPending && expiresAt !== null && <span class="small faint num">{formatLeft(expiresAt, now)}</span>}
      </div>
      {operation !== null && (
        <Asked operation={operation} input={input} contact={readText(contact, 'name')} />
      )}
      {contact.isChanged === true && (
        <p class="small wrap">This contact has another address by now. Nobody would be paid.</p>
      )}
      <MovesFirst funding={readRecord(shown.funding)} />
      <BrokenRules members={shown} />
      {reason !== null && <Quote by="The agent’s own words">{plainText(reason)}</Quote>}
      <Ending status={status} shown={shown} path={`/approvals/${encodeURIComponent(id)}`} />
    </View>
  )
}

/** Tells which money was planned to move from another chain before the payment. */
function MovesFirst({ funding }: { readonly funding: Members }) {
  const [step] = Array.isArray(funding.steps) ? funding.steps.map(readRecord) : []
  if (step === undefined) return null
  const [from, to, sent, fee] = [
    readText(step, 'from'),
    readText(step, 'to'),
    readText(step, 'sent'),
    readText(funding, 'fee'),
  ]
  if (from === null || to === null || sent === null || fee === null) return null
  const etaSec = Number(funding.etaSec)
  return <p class="small wrap num">{plainText(describeMove({ from, to, sent, fee, etaSec }))}</p>
}

function Asked({
  operation,
  input,
  contact,
}: {
  readonly operation: string
  readonly input: Members
  /** Name of the contact that would be paid. */
  readonly contact: string | null
}) {
  const facts = describeCall(operation, input)
  const { verb, amount, asset, party, preposition } = facts
  return (
    <div class="ask__says">
      <h1 class="hide">{capital(writeCallSentence(facts))}</h1>
      <p aria-hidden="true">{capital(verb)}</p>
      {amount !== null && (
        <div class="ask__amount" aria-hidden="true">
          {formatDecimal(amount)} <small>{asset}</small>
        </div>
      )}
      {party !== null && (
        <div>
          <span class="small soft">{preposition} </span>
          {contact !== null && (
            <b>
              <Untrusted>{shortText(contact)}</Untrusted>
            </b>
          )}
          <FullAddress address={party} />
        </div>
      )}
    </div>
  )
}

function Ending({
  status,
  shown,
  path,
}: {
  readonly status: string
  readonly shown: Members
  readonly path: string
}) {
  if (status === 'pending')
    return (
      <div class="stack">
        <PageButton path={path} isMain>
          Decide on the gateway’s page
        </PageButton>
        <p class="small faint app__center">You sign in there. Nothing in this chat can say yes for you.</p>
      </div>
    )
  const note = readText(shown, 'note')
  const failed = readText(readRecord(shown.problem), 'detail')
  return (
    <div class="stack">
      {note !== null && (
        <Quote by="Your note" isOwn>
          {plainText(note)}
        </Quote>
      )}
      {failed !== null && <p class="small wrap">It was approved and then failed: {plainText(failed)}</p>}
      <PageButton path={path}>Show it</PageButton>
    </div>
  )
}
