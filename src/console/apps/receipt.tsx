/** What was paid: the facts of a transfer or of a purchase, or what became of it instead. */
import type { ComponentChildren } from 'preact'
import { FullAddress } from '../components/call.tsx'
import { Icon } from '../components/icon.tsx'
import { Quote, Untrusted } from '../components/quote.tsx'
import { describeCall } from '../words/calls.ts'
import { formatDecimal, formatUsd } from '../words/money.ts'
import { nameChain } from '../words/names.ts'
import { plainText, shortText } from '../words/plain-text.ts'
import { formatMoment } from '../words/time.ts'
import { ApprovalPanel } from './approval.tsx'
import { given, type Members, outcome } from './host.ts'
import { readText } from './members.ts'
import { PageButton, Refused, Unanswered, View } from './panel.tsx'

export function ReceiptView() {
  const { value } = outcome
  // Only a purchase names a URL.
  const isPurchase = readText(given.value, 'url') !== null
  if (value.status === 'answered')
    return isPurchase || value.answer.purchaseId !== undefined ? (
      <Bought answer={value.answer} />
    ) : (
      <Sent answer={value.answer} />
    )
  if (value.status !== 'failed') return <Unanswered doing="Paying" />
  const { problem } = value
  if (readText(problem, 'approvalId') !== null && readText(problem, 'code') === 'approval_required')
    return <ApprovalPanel first={problem} operation={isPurchase ? 'purchases.buy' : 'wallets.transfer'} />
  if (readText(problem, 'code') === 'settlement_pending')
    return <Refused problem={problem} title="It may have been paid" />
  return <Refused problem={problem} title="Nothing was paid" />
}

interface Fact {
  readonly name: string
  readonly value: ComponentChildren | null
}

function Paid({
  words,
  isDone,
  amount,
  asset,
  facts,
  children,
}: {
  readonly words: string
  readonly isDone: boolean
  readonly amount: string | null
  readonly asset: string | null
  readonly facts: readonly Fact[]
  readonly children?: ComponentChildren
}) {
  return (
    <View>
      <div class="ask__says">
        <span class={`glyph glyph--lg glyph--round ${isDone ? 'glyph--in' : ''}`} aria-hidden="true">
          <Icon name={isDone ? 'check' : 'clock'} />
        </span>
        <h1 class="ask__line">{words}</h1>
        {amount !== null && asset !== null && (
          <div class="ask__amount">
            {formatDecimal(amount)} <small>{asset}</small>
          </div>
        )}
      </div>
      <dl class="facts facts--end">
        {facts
          .filter(({ value }) => value !== null)
          .map(({ name, value }) => (
            <>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </>
          ))}
      </dl>
      {children}
      <PageButton path="/activity">Open Activity</PageButton>
    </View>
  )
}

const mono = (value: string | null) =>
  value === null ? null : <span class="mono small wrap">{plainText(value)}</span>

const address = (value: string | null) => (value === null ? null : <FullAddress address={value} />)

function Sent({ answer }: { readonly answer: Members }) {
  const status = readText(answer, 'status')
  const isDone = status === 'confirmed'
  const openWords =
    status === 'funding' ? 'Its money is on its way from another chain' : 'Sent, not yet confirmed'
  const [chain, contact] = [readText(answer, 'chain'), readText(answer, 'contact')]
  return (
    <Paid
      words={isDone ? 'Sent' : openWords}
      isDone={isDone}
      amount={readText(answer, 'amount')}
      asset={readText(answer, 'token')}
      facts={[
        { name: 'To', value: address(readText(answer, 'destination')) },
        {
          name: 'Contact',
          value: contact === null ? null : <Untrusted>{shortText(contact)}</Untrusted>,
        },
        { name: 'Chain', value: chain === null ? null : nameChain(chain) },
        { name: 'Transaction', value: mono(readText(answer, 'transactionHash')) },
        { name: 'Transfer', value: mono(readText(answer, 'transferId')) },
        { name: 'Decision', value: mono(readText(answer, 'decisionId')) },
      ]}
    />
  )
}

const boughtWords: Readonly<Record<string, string>> = {
  delivered: 'Paid and delivered',
  undelivered: 'Paid, and nothing came',
  settlement_pending: 'It may have been paid',
  free: 'It was free',
}

function Bought({ answer }: { readonly answer: Members }) {
  const status = readText(answer, 'status') ?? ''
  const { party } = describeCall('purchases.buy', given.value)
  const [usd, until] = [readText(answer, 'usd'), readText(answer, 'expiresAt')]
  const failure = readText(answer, 'lastFailure')
  return (
    <Paid
      words={boughtWords[status] ?? plainText(status)}
      isDone={status === 'delivered' || status === 'free'}
      amount={readText(answer, 'asset') === null ? null : readText(answer, 'charged')}
      asset={readText(answer, 'asset')}
      facts={[
        { name: 'From', value: party === null ? null : <span class="wrap">{plainText(party)}</span> },
        { name: 'Paid to', value: address(readText(answer, 'payTo')) },
        { name: 'Worth', value: usd === null ? null : formatUsd(usd) },
        { name: 'Transaction', value: mono(readText(answer, 'transaction')) },
        { name: 'Purchase', value: mono(readText(answer, 'purchaseId')) },
        { name: 'Decision', value: mono(readText(answer, 'decisionId')) },
        {
          name: 'May still come until',
          value: status === 'undelivered' && until !== null ? formatMoment(until) : null,
        },
      ]}
    >
      {status !== 'delivered' && failure !== null && (
        <Quote by="The seller’s answer">{plainText(failure)}</Quote>
      )}
    </Paid>
  )
}
