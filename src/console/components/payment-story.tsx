/** The story of a payment as a timeline, with the one thing that can be done about it now. */
import { useState } from 'preact/hooks'
import type { ActivityEntry, Recourse } from '../../client/operations.ts'
import { bursar } from '../data/gateway.ts'
import { recourseByPayment } from '../data/money.ts'
import { useResource } from '../data/resource.ts'
import {
  describeReason,
  type Moment,
  offerRecourse,
  type Reason,
  reasons,
  type Tone,
  tellStory,
} from '../words/recourse.ts'
import { formatDay, formatMoment, formatWhen } from '../words/time.ts'
import { ActionButton, Dialog, DialogButtons, Field } from './controls.tsx'
import { Icon, type IconName } from './icon.tsx'
import { Failed, SkeletonRows } from './messages.tsx'
import { Quote, Untrusted } from './quote.tsx'
import { titleEntry } from './statement.tsx'

const payments = ['purchase', 'card_transaction', 'payout', 'transfer', 'swap'] as const
type PaymentKind = (typeof payments)[number]

const icons: Readonly<Record<Tone, IconName | null>> = {
  good: 'check',
  waiting: 'clock',
  bad: 'close',
  plain: null,
}

/** Nothing for what was never paid and for money that came in. */
export function PaymentStory({ entry }: { readonly entry: ActivityEntry }) {
  const kind = payments.find((one) => one === entry.object.kind)
  if (kind === undefined || tellStory(entry, null).length === 0) return null
  return <Story entry={entry} kind={kind} />
}

function Story({ entry, kind }: { readonly entry: ActivityEntry; readonly kind: PaymentKind }) {
  const source = recourseByPayment(entry.object.id)
  const state = useResource(source)
  const [isAsking, ask] = useState(false)
  if (state.status === 'loading') return <SkeletonRows rows={2} />
  if (state.status === 'failed')
    return <Failed subject="What became of it" error={state.error} retry={source.reload} />
  const recourse = state.value
  const offer = offerRecourse(entry, recourse)
  return (
    <div class="stack">
      <h3>What became of it</h3>
      <ol class="story">
        {tellStory(entry, recourse).map((moment, position) => (
          <MomentItem key={position} moment={moment} />
        ))}
      </ol>
      {recourse?.status === 'open' && (
        <p class="small soft">
          It ends by {formatDay(recourse.deadline)} at the latest. Nothing need be done.
        </p>
      )}
      {kind === 'transfer' && entry.status === 'completed' && (
        <p class="small soft">A transfer on the chain is final: only its payee can send it back.</p>
      )}
      {offer !== null && (
        <div class="row">
          <button
            class={offer.isUrgent ? 'btn btn--sm btn--primary' : 'btn btn--sm'}
            type="button"
            onClick={() => ask(true)}
          >
            <Icon name="return" small />
            {offer.words}
          </button>
        </div>
      )}
      {isAsking && offer !== null && (
        <AskDialog entry={entry} kind={kind} offer={offer} opened={source.put} close={() => ask(false)} />
      )}
    </div>
  )
}

function MomentItem({ moment: { at, tone, words, detail } }: { readonly moment: Moment }) {
  const icon = icons[tone]
  return (
    <li class={`story__moment story__moment--${tone}`}>
      <span class="story__mark" aria-hidden="true">
        {icon !== null && <Icon name={icon} small />}
      </span>
      <span class="story__words">
        {words}
        {detail !== null && (
          <span class="story__detail small faint">
            <Untrusted>{detail}</Untrusted>
          </span>
        )}
      </span>
      {at !== null && (
        <time class="small faint num" dateTime={at} title={formatMoment(at)}>
          {formatWhen(at)}
        </time>
      )}
    </li>
  )
}

/** What is tried, in a sentence for each kind of payment. */
const tried: Readonly<Record<PaymentKind, string>> = {
  purchase:
    'A payment that the seller has not taken is made void. Otherwise what you bought is asked for once more, and then the money, where the seller’s terms say how.',
  card_transaction:
    'A payment that has not cleared is given up. One that has is disputed at the card’s issuer; that can take months.',
  payout:
    'A payout that has not been sent is called back. Once it is sent, only its recipient can return it.',
  transfer: 'A transfer on the chain is final.',
  swap: 'What has left one chain can be brought to the other at any later time, and is not lost. You see what is missing.',
}

function AskDialog({
  entry,
  kind,
  offer,
  opened,
  close,
}: {
  readonly entry: ActivityEntry
  readonly kind: PaymentKind
  readonly offer: { readonly words: string; readonly reason: Reason }
  readonly opened: (recourse: Recourse) => void
  readonly close: () => void
}) {
  const [reason, choose] = useState(offer.reason)
  const [note, setNote] = useState('')
  const open = async () => {
    const words = note.trim()
    const object = { kind, id: entry.object.id }
    opened(await bursar.recourse.open({ object, reason, ...(words === '' ? {} : { note: words }) }))
    close()
  }
  return (
    <Dialog title={offer.words} close={close}>
      <p class="soft">{tried[kind]}</p>
      <Quote by="Paid to">{titleEntry(entry)}</Quote>
      <Field label="What is wrong" of="reason">
        {(props) => (
          <select
            {...props}
            class="input"
            value={reason}
            onChange={(event) => {
              const { value } = event.currentTarget
              choose(reasons.find(([one]) => one === value)?.[0] ?? reason)
            }}
          >
            {reasons.map(([one]) => (
              <option key={one} value={one}>
                {describeReason(one)}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field
        label="A note"
        hint={
          kind === 'card_transaction'
            ? 'The card’s issuer reads it with a dispute.'
            : 'It is kept with the payment, and sent to nobody.'
        }
        of="note"
      >
        {(props) => (
          <textarea
            {...props}
            class="input"
            rows={2}
            maxLength={500}
            value={note}
            onInput={(event) => setNote(event.currentTarget.value)}
          />
        )}
      </Field>
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={open} busy="Asking">
          {offer.words}
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}
