/** The public page of a request for money, for whoever has its link. It shows nothing of the account but what the request says. */
import { encode } from 'uqr'
import type { RequestStatus } from '../../../records/requests/store.ts'
import { Shell } from './shell.tsx'

/** Light modules around the code; the padding of the style adds to them. */
const BORDER = 2

/** Where tokens are sent. @property link EIP-681: a wallet fills in the token, the payee and the amount. */
export interface TransferWay {
  readonly chain: string
  readonly moreChains: readonly string[]
  readonly address: string
  readonly link: string
}

/** @property outstanding what is left to pay. @property details names and values that bank forms ask for. */
export interface PayPageProps {
  readonly status: RequestStatus
  readonly amount: string
  readonly asset: string
  readonly outstanding: string
  readonly received: string
  readonly isOverpaid: boolean
  readonly isSandbox: boolean
  readonly payee: string | null
  readonly memo: string | null
  readonly expiresAt: Date
  readonly transfer: TransferWay | null
  readonly bank: {
    readonly details: readonly (readonly [string, string])[]
    readonly reference: string
  } | null
  readonly x402Url: string | null
}

export function PayPage(props: PayPageProps) {
  const { status, amount, asset, outstanding, payee, memo, isSandbox } = props
  const isOpen = status === 'open' || status === 'partly_paid'
  const heading = isOpen ? `Pay ${outstanding} ${asset}` : headings[status]
  return (
    <Shell title={heading}>
      <h1 tabindex={-1}>{heading}</h1>
      <dl>
        {payee !== null && (
          <>
            <dt>To</dt>
            <dd>
              <bdi>{payee}</bdi>
            </dd>
          </>
        )}
        {memo !== null && (
          <>
            <dt>For</dt>
            <dd>
              <bdi>{memo}</bdi>
            </dd>
          </>
        )}
        {(!isOpen || status === 'partly_paid') && (
          <>
            <dt>Asked for</dt>
            <dd>
              {amount} {asset}
            </dd>
          </>
        )}
        {props.received !== '0' && (
          <>
            <dt>Received</dt>
            <dd>
              {props.received} {asset}
            </dd>
          </>
        )}
        {isOpen && (
          <>
            <dt>Until</dt>
            <dd>{formatUtc(props.expiresAt)}</dd>
          </>
        )}
      </dl>
      {isOpen ? <Ways {...props} /> : <p>{closings(props)}</p>}
      {isSandbox && <p class="hint">This is a sandbox: its money is worth nothing.</p>}
      {(payee !== null || memo !== null) && isOpen && (
        <p class="hint">
          Whoever sent you this link wrote the name and the purpose. Pay only if you know who it was.
        </p>
      )}
    </Shell>
  )
}

const headings: Readonly<Record<Exclude<RequestStatus, 'open' | 'partly_paid'>, string>> = {
  paid: 'This is paid',
  expired: 'This request has expired',
  canceled: 'This request was canceled',
}

function closings({ status, isOverpaid }: PayPageProps): string {
  if (status === 'paid')
    return isOverpaid
      ? 'More arrived than was asked for. Ask the payee about the rest.'
      : 'Nothing is left to pay. Thank you.'
  return 'Do not pay it. Ask the payee for another request.'
}

function Ways({ transfer, bank, x402Url, outstanding, asset }: PayPageProps) {
  return (
    <>
      {transfer !== null && (
        <section class="way" aria-labelledby="by-transfer">
          <h2 id="by-transfer">From a wallet</h2>
          <QrCode
            text={transfer.link}
            label={`Code to scan: ${outstanding} ${asset} to ${transfer.address}`}
          />
          <a class="button primary" href={transfer.link}>
            Open in a wallet
          </a>
          <dl>
            <dt>Amount</dt>
            <dd>
              <code>{outstanding}</code> {asset}
            </dd>

            <dt>Chain</dt>
            <dd>{[transfer.chain, ...transfer.moreChains].join(', or ')}</dd>

            <dt>Address</dt>
            <dd>
              <code>{transfer.address}</code>
            </dd>
          </dl>
          <p class="warn">Send exactly this amount, in one transfer: it is how your payment is recognized.</p>
        </section>
      )}
      {bank !== null && (
        <section class="way" aria-labelledby="by-bank">
          <h2 id="by-bank">By bank</h2>
          <dl>
            {bank.details.map(([name, value]) => (
              <>
                <dt>{name}</dt>
                <dd>
                  <code>{value}</code>
                </dd>
              </>
            ))}

            <dt>Reference</dt>
            <dd>
              <code>{bank.reference}</code>
            </dd>
          </dl>
          <p class="warn">Write the reference into the transfer: it is how your payment is recognized.</p>
        </section>
      )}
      {x402Url !== null && (
        <section class="way" aria-labelledby="by-program">
          <h2 id="by-program">By an agent or a program</h2>
          <p>This address takes payments by x402:</p>
          <p>
            <code>{x402Url}</code>
          </p>
        </section>
      )}
    </>
  )
}

export function NoRequestPage() {
  return (
    <Shell title="No such request">
      <h1 tabindex={-1}>There is no such request</h1>
      <p>
        The link may be cut off or mistyped. Ask whoever sent it to you for all of it. Pay nothing until then.
      </p>
    </Shell>
  )
}

function QrCode({ text, label }: { readonly text: string; readonly label: string }) {
  const { data, size } = encode(text, { border: BORDER })
  const path = data
    .flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])))
    .join('')
  return (
    <svg
      class="qr"
      viewBox={`0 0 ${size} ${size}`}
      role="img"
      aria-label={label}
      shape-rendering="crispEdges"
    >
      <path d={path} />
    </svg>
  )
}

function formatUtc(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace('T', ', ')} UTC`
}
