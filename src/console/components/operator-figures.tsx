/** Figures of the deployment: what each rail moved, which rules refused, the money at risk, and how long things wait. */
import type { ComponentChildren } from 'preact'
import type { AdminFiguresResponse, Rail } from '../../client/operations.ts'
import { figures } from '../data/operator.ts'
import { useResource } from '../data/resource.ts'
import { digits } from '../words/digits.ts'
import { findShare, formatDecimal, formatUsd } from '../words/money.ts'
import { count } from '../words/names.ts'
import { nameRule } from '../words/policy.ts'
import { formatSpan, formatWhen } from '../words/time.ts'
import { ActionButton } from './controls.tsx'
import { Icon } from './icon.tsx'
import { Failed, SkeletonRows } from './messages.tsx'
import { Panel } from './panel.tsx'

export const railWords: Readonly<Record<Rail['id'], string>> = {
  'wallet-transfer': 'Transfers',
  'wallet-gasless': 'Payments relayed for others',
  'x402-fx': 'FX quotes sold',
  'x402-purchases': 'Purchases of web resources',
  investing: 'Investing',
  'card-payments': 'Card payments',
  'bank-deposit': 'Bank deposits',
  'bank-payout': 'Bank payouts',
}

/** A panel of one part of the figures. */
function Part({
  title,
  foot,
  more,
  children,
}: {
  readonly title: string
  readonly foot?: (value: AdminFiguresResponse) => string
  readonly more?: (value: AdminFiguresResponse) => ComponentChildren
  readonly children: (value: AdminFiguresResponse) => ComponentChildren
}) {
  const state = useResource(figures)
  const isReady = state.status === 'ready'
  return (
    <Panel
      title={title}
      more={isReady && more?.(state.value)}
      foot={isReady && foot !== undefined ? foot(state.value) : undefined}
    >
      {state.status === 'loading' && <SkeletonRows rows={3} />}
      {state.status === 'failed' && (
        <Failed subject={`“${title}”`} error={state.error} retry={figures.reload} />
      )}
      {isReady && children(state.value)}
    </Panel>
  )
}

function Nothing({ children }: { readonly children: ComponentChildren }) {
  return (
    <p class="panel__body small soft row">
      <Icon name="check" small />
      {children}
    </p>
  )
}

/** Head of a table over two periods. */
function Periods({ of }: { readonly of: string }) {
  return (
    <thead>
      <tr>
        <th scope="col">{of}</th>
        <th scope="col" class="end">
          24 hours
        </th>
        <th scope="col" class="end">
          7 days
        </th>
      </tr>
    </thead>
  )
}

export function VolumePanel() {
  return (
    <Part
      title="Volume"
      foot={({ asOf }) => `As of ${formatWhen(asOf)}. What failed or came back is not counted.`}
      more={() => (
        <ActionButton size="sm" icon="retry" run={figures.reload} busy="Loading">
          Refresh
        </ActionButton>
      )}
    >
      {({ volume }) => (
        <div class="tablewrap">
          <table class="table">
            <Periods of="Rail" />
            <tbody>
              {volume.map(({ rail, day, week }) => (
                <tr key={rail}>
                  <td>{railWords[rail]}</td>
                  <Moved {...day} />
                  <Moved {...week} />
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Part>
  )
}

function Moved({ usd, count: number }: { readonly usd: string; readonly count: number }) {
  if (number === 0) return <td class="end faint">{'\u2013'}</td>
  return (
    <td class="end end--wrap">
      <span>{formatUsd(usd)}</span>{' '}
      <span class="faint">{`\u00d7 ${number.toLocaleString(undefined, digits)}`}</span>
    </td>
  )
}

export function RefusalsPanel() {
  return (
    <Part title="Refused by rule" foot={() => 'A spend counts for every rule that it broke.'}>
      {({ refusals }) =>
        refusals.length === 0 ? (
          <Nothing>Nothing was refused in seven days.</Nothing>
        ) : (
          <div class="tablewrap">
            <table class="table">
              <Periods of="Rule" />
              <tbody>
                {refusals.map(({ rule, day, week }) => (
                  <tr key={rule}>
                    <td>
                      {nameRule(rule)} <span class="faint mono small">{rule}</span>
                    </td>
                    <td class="end">{formatCount(day)}</td>
                    <td class="end">{formatCount(week)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )
      }
    </Part>
  )
}

function formatCount(number: number): string {
  return formatDecimal(String(number)).replace(/\D00$/, '')
}

export function CardFloatPanel() {
  return (
    <Part title="Card float at risk">
      {({ cardFloat: { usd, largest, limit, accounts } }) => (
        <div class="panel__body stack stack--tight">
          <div class="stat">
            <span class="stat__value">{formatUsd(usd)}</span>
            <span class="small faint">
              Promised by cards, and still in wallets that their owners can empty:{' '}
              {count(accounts, 'account')}.
            </span>
          </div>
          <svg class="floatbar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
            <rect class="floatbar__track" width="100" height="6" />
            <rect class="d1" width={findShare(largest, limit)} height="6" />
          </svg>
          <span class="small soft num">
            The largest account: {formatUsd(largest)} of {formatUsd(limit)}
          </span>
        </div>
      )}
    </Part>
  )
}

const queueWords: Readonly<Record<AdminFiguresResponse['queues'][number]['queue'], string>> = {
  reviews: 'Reviews',
  identities: 'Identities to compare',
  travel_rules: 'Travel Rule names',
  alarms: 'Alarms',
  debts: 'Debts',
  approvals: 'Approvals by owners',
  transfers: 'Transfers to settle',
  relays: 'Relayed payments to settle',
  purchases: 'Purchases to settle',
  sales: 'Payments of buyers to settle',
  payouts: 'Payouts that have not arrived',
  orders: 'Open orders',
  settlements: 'Card settlements',
  card_messages: 'Card messages out of order',
  events: 'Events to publish',
  webhooks: 'Webhooks to deliver',
  mails: 'E-mails to send',
}

export function QueuesPanel() {
  return (
    <Part title="What waits, and how long">
      {({ queues, asOf }) => {
        const waiting = queues.filter((queue) => queue.waiting > 0)
        if (waiting.length === 0) return <Nothing>No queue holds anything.</Nothing>
        return (
          <div class="tablewrap">
            <table class="table">
              <thead>
                <tr>
                  <th scope="col">Queue</th>
                  <th scope="col" class="end">
                    Waiting
                  </th>
                  <th scope="col" class="end">
                    Oldest
                  </th>
                </tr>
              </thead>
              <tbody>
                {waiting.map(({ queue, waiting: number, oldestAt }) => (
                  <tr key={queue}>
                    <td>{queueWords[queue]}</td>
                    <td class="end">{formatCount(number)}</td>
                    <td class="end soft">{oldestAt === null ? '\u2013' : formatAge(oldestAt, asOf)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )
      }}
    </Part>
  )
}

function formatAge(since: string, now: string): string {
  return formatSpan(Math.round((Date.parse(now) - Date.parse(since)) / 1000))
}
