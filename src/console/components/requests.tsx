/** Requests for money: a list with their states, and dialogs to ask, to show a link with its code, and to cancel. */
import { useState } from 'preact/hooks'
import type { PaymentRequest } from '../../client/operations.ts'
import { bursar } from '../data/gateway.ts'
import { requests } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { compareDecimals, formatDecimal, subtractDecimals } from '../words/money.ts'
import { formatDay, formatMoment, formatWhen } from '../words/time.ts'
import { ActionButton, Copy, Dialog, DialogButtons, Field, MoneyInput } from './controls.tsx'
import { Icon } from './icon.tsx'
import { Chip, type ChipKind } from './marks.tsx'
import { Empty, toast } from './messages.tsx'
import { NotReady } from './not-ready.tsx'
import { Panel } from './panel.tsx'
import { QrCode } from './qr-code.tsx'
import { Untrusted } from './quote.tsx'

const DAY_MS = 86_400_000
const terms = { '1': '1 day', '7': '7 days', '30': '30 days', '90': '90 days' } as const
type Term = keyof typeof terms

const states: Readonly<Record<PaymentRequest['status'], readonly [ChipKind, string]>> = {
  open: ['info', 'Open'],
  partly_paid: ['warn', 'Partly paid'],
  paid: ['good', 'Paid'],
  expired: ['plain', 'Expired'],
  canceled: ['plain', 'Canceled'],
}

export function Requests() {
  const state = useResource(requests)
  const [isAsking, setAsking] = useState(false)
  const [shownId, show] = useState<string | null>(null)
  const all = loadedValue(state)?.requests ?? []
  const shown = all.find(({ requestId }) => requestId === shownId)
  return (
    <Panel
      title="Requests"
      more={
        <button class="btn btn--sm" type="button" onClick={() => setAsking(true)}>
          <Icon name="plus" small />
          Request money
        </button>
      }
    >
      <NotReady state={state} subject="The list of requests" retry={requests.reload} />
      {state.status === 'ready' && all.length === 0 && (
        <Empty icon="in" title="No requests yet">
          Ask for an amount by a link: it is paid from a wallet, by an agent, or by bank.
        </Empty>
      )}
      {all.length > 0 && (
        <ul class="rows">
          {all.map((request) => (
            <RequestRow key={request.requestId} request={request} show={() => show(request.requestId)} />
          ))}
        </ul>
      )}
      {isAsking && (
        <AskDialog
          close={() => setAsking(false)}
          made={(id) => {
            setAsking(false)
            show(id)
          }}
        />
      )}
      {shown !== undefined && <RequestDialog request={shown} close={() => show(null)} />}
    </Panel>
  )
}

function RequestRow({ request, show }: { readonly request: PaymentRequest; readonly show: () => void }) {
  const { amount, asset, memo, status, received, overpaid, expiresAt, createdAt } = request
  const [kind, word] = states[status]
  const isOpen = status === 'open' || status === 'partly_paid'
  const facts = [
    isOpen ? `until ${formatDay(expiresAt)}` : `asked ${formatDay(createdAt)}`,
    ...(status === 'partly_paid' || (status !== 'paid' && compareDecimals(received, '0') > 0)
      ? [`${formatDecimal(received)} arrived`]
      : []),
    ...(compareDecimals(overpaid, '0') > 0 ? [`${formatDecimal(overpaid)} too much`] : []),
  ]
  return (
    <li class="item item--two">
      <span class="item__main">
        <span class="item__name num">
          {formatDecimal(amount)} {asset} <Chip kind={kind}>{word}</Chip>
        </span>
        <span class="item__sub wrap">
          {memo !== null && (
            <>
              <Untrusted>{memo}</Untrusted> ·{' '}
            </>
          )}
          {facts.join(', ')}
        </span>
      </span>
      <span class="item__end">
        <button
          class="btn btn--sm"
          type="button"
          aria-label={`Show the request for ${formatDecimal(amount)} ${asset}`}
          onClick={show}
        >
          Show
        </button>
      </span>
    </li>
  )
}

function AskDialog({ close, made }: { readonly close: () => void; readonly made: (id: string) => void }) {
  const [amount, setAmount] = useState('')
  const [asset, setAsset] = useState<'USDC' | 'EURC'>('USDC')
  const [memo, setMemo] = useState('')
  const [payee, setPayee] = useState('')
  const [term, setTerm] = useState<Term>('30')
  const ask = async () => {
    const { requestId } = await bursar.requests.create({
      amount: amount.trim(),
      asset,
      ...(memo.trim() === '' ? {} : { memo: memo.trim() }),
      ...(payee.trim() === '' ? {} : { payee: payee.trim() }),
      expiresAt: new Date(Date.now() + Number(term) * DAY_MS).toISOString(),
    })
    await requests.reload()
    made(requestId)
  }
  return (
    <Dialog title="Request money" close={close}>
      <Field label="Amount" of="amount">
        {(props) => (
          <MoneyInput
            autofocus
            value={amount}
            onInput={(event) => setAmount(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <Field label="In" of="asset">
        {(props) => (
          <select
            class="input"
            value={asset}
            onChange={(event) => setAsset(event.currentTarget.value === 'EURC' ? 'EURC' : 'USDC')}
            {...props}
          >
            <option value="USDC">USDC, digital dollars</option>
            <option value="EURC">EURC, digital euros</option>
          </select>
        )}
      </Field>
      <Field label="What it is for (optional)" of="memo" hint="Whoever has the link reads it.">
        {(props) => (
          <input
            class="input"
            maxLength={140}
            value={memo}
            onInput={(event) => setMemo(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <Field label="Your name on the page (optional)" of="payee" hint="Nothing else of you is shown.">
        {(props) => (
          <input
            class="input"
            maxLength={80}
            autoComplete="off"
            value={payee}
            onInput={(event) => setPayee(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <Field label="Open for" of="expiresAt">
        {(props) => (
          <select
            class="input"
            value={term}
            onChange={(event) => setTerm(parseTerm(event.currentTarget.value))}
            {...props}
          >
            {Object.entries(terms).map(([days, words]) => (
              <option key={days} value={days}>
                {words}
              </option>
            ))}
          </select>
        )}
      </Field>
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={ask} busy="Asking" disabled={amount.trim() === ''}>
          Make the link
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

function parseTerm(text: string): Term {
  return text === '1' || text === '7' || text === '90' ? text : '30'
}

function RequestDialog({ request, close }: { readonly request: PaymentRequest; readonly close: () => void }) {
  const { requestId, amount, asset, status, received, url, x402Url, reference, expiresAt, payments } = request
  const isOpen = status === 'open' || status === 'partly_paid'
  const cancel = async () => {
    await bursar.requests.remove({ id: requestId })
    await requests.reload()
    close()
    toast('The request is canceled.')
  }
  return (
    <Dialog title={`${formatDecimal(amount)} ${asset}: ${states[status][1].toLowerCase()}`} close={close}>
      {isOpen && (
        <>
          <div class="stack stack--tight request-code">
            <QrCode text={url} label="Code to scan: the page on which this is paid" />
            <span class="label">Link</span>
            <Copy text={url} what="the link" />
          </div>
          {x402Url !== null && (
            <div class="stack stack--tight">
              <span class="label">For an agent (x402)</span>
              <Copy text={x402Url} what="the link for an agent" />
            </div>
          )}
          <div class="stack stack--tight">
            <span class="label">Reference for a bank transfer</span>
            <Copy text={reference} what="the reference" />
          </div>
          <p class="small soft">
            Open until {formatMoment(expiresAt)}.
            {status === 'partly_paid' &&
              ` ${formatDecimal(subtractDecimals(amount, received))} ${asset} is missing.`}
          </p>
        </>
      )}
      <Arrived payments={payments} asset={asset} />
      <Unmatched request={request} />
      <DialogButtons close={close} leave="Close">
        {isOpen && (
          <ActionButton kind="stop" run={cancel} busy="Canceling">
            Cancel the request
          </ActionButton>
        )}
      </DialogButtons>
    </Dialog>
  )
}

const ways = { transfer: 'Transfer', x402: 'Agent (x402)', bank: 'Bank' } as const

function Arrived({ payments, asset }: Pick<PaymentRequest, 'payments' | 'asset'>) {
  if (payments.length === 0) return null
  return (
    <ul class="rows">
      {payments.map(({ id, kind, amount, at, late, reversed }) => (
        <li class="item item--two" key={id}>
          <span class="item__main">
            <span class="item__name">{ways[kind]}</span>
            <span class="item__sub">
              {formatWhen(at)}
              {late && ', too late'}
              {reversed && ', taken back'}
            </span>
          </span>
          <span class="item__end num">
            {formatDecimal(amount)} {asset}
          </span>
        </li>
      ))}
    </ul>
  )
}

/** Money that may be meant for the request: only the owner can know. */
function Unmatched({ request }: { readonly request: PaymentRequest }) {
  const [found, setFound] = useState<Awaited<ReturnType<typeof bursar.requests.get>>['unmatched'] | null>(
    null,
  )
  if (request.status === 'paid') return null
  const look = async () => setFound((await bursar.requests.get({ id: request.requestId })).unmatched)
  const link = async (entryId: string) => {
    await bursar.requests.link({ id: request.requestId, entryId })
    setFound(null)
    await requests.reload()
    toast('The payment is linked.')
  }
  if (found === null)
    return (
      <div>
        <ActionButton run={look} busy="Looking">
          It was paid, but not noticed
        </ActionButton>
      </div>
    )
  if (found.length === 0)
    return <p class="small soft">Nothing in {request.asset} has arrived since that no request has.</p>
  return (
    <div class="stack stack--tight">
      <span class="label">Arrived since, and of no request</span>
      <ul class="rows">
        {found.map(({ id, amount, at }) => (
          <li class="item item--two" key={id}>
            <span class="item__main">
              <span class="item__name num">
                {formatDecimal(amount)} {request.asset}
              </span>
              <span class="item__sub">{formatWhen(at)}</span>
            </span>
            <ActionButton run={() => link(id)} busy="Linking">
              Link
            </ActionButton>
          </li>
        ))}
      </ul>
    </div>
  )
}
