/** Entries of the statement. */
import { Link } from 'wouter-preact'
import type { ActivityEntry } from '../../client/operations.ts'
import { agents } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { namePayee } from '../words/names.ts'
import { formatWhen } from '../words/time.ts'
import { Amount } from './amount.tsx'
import type { IconName } from './icon.tsx'
import { IconGlyph, Status } from './marks.tsx'
import { Untrusted } from './quote.tsx'

/** Word and icon of each kind of entry. */
export const kinds: Readonly<Record<string, { readonly word: string; readonly icon: IconName }>> = {
  transfer: { word: 'Transfer', icon: 'out' },
  deposit: { word: 'Deposit', icon: 'in' },
  relay: { word: 'Relayed payment', icon: 'activity' },
  card: { word: 'Card', icon: 'card' },
  order: { word: 'Order', icon: 'invest' },
  purchase: { word: 'Purchase', icon: 'cart' },
  payout: { word: 'Payout', icon: 'bank' },
  swap: { word: 'Conversion', icon: 'retry' },
  fee: { word: 'Fee', icon: 'out' },
  shortfall: { word: 'Shortfall', icon: 'warning' },
  dividend: { word: 'Dividend', icon: 'in' },
}

export function nameKind(kind: string): string {
  return kinds[kind]?.word ?? kind
}

export function chooseIcon({ kind, direction }: Pick<ActivityEntry, 'kind' | 'direction'>): IconName {
  return kind === 'transfer' && direction === 'in' ? 'in' : (kinds[kind]?.icon ?? 'activity')
}

const voidStatuses: ReadonlySet<string> = new Set(['failed', 'denied', 'canceled', 'reversed'])

/** True if the money did not move after all. */
export function isVoid({ status }: Pick<ActivityEntry, 'status'>): boolean {
  return voidStatuses.has(status)
}

/** Amount to show: what moved, or struck through what was asked for. Null while it is unknown. */
export function shownAmount(entry: Pick<ActivityEntry, 'status' | 'amount' | 'requested'>): string | null {
  return isVoid(entry) ? (entry.requested ?? entry.amount) : entry.amount
}

/** Name of an agent for its id; null without one. */
export function useAgentName(agentId: string | null): string | null {
  const keys = loadedValue(useResource(agents))?.keys
  if (agentId === null) return null
  return keys?.find((key) => key.agentId === agentId)?.name ?? 'An agent'
}

/** Payee or payer on one line; what has none is named by its kind. */
export function titleEntry({
  contact,
  counterparty,
  kind,
  direction,
}: Pick<ActivityEntry, 'contact' | 'counterparty' | 'kind' | 'direction'>): string {
  if (contact !== null) return contact
  if (kind === 'swap' && counterparty !== null) return `${direction === 'in' ? 'From' : 'To'} ${counterparty}`
  return counterparty === null ? nameKind(kind) : namePayee(counterparty)
}

const currencies: ReadonlySet<string> = new Set(['USD', 'EUR', 'GBP', 'INR'])

/** The kind; of a deposit, whose payer is unknown, where it went. */
export function describeKind({ kind, counterparty, asset }: ActivityEntry): string {
  if (kind !== 'deposit' || counterparty !== null) return nameKind(kind)
  return currencies.has(asset) ? 'Into your cash' : 'Into your wallet'
}

/** A row of a short list. The whole statement is on the activity page. */
export function EntryRow({ entry }: { readonly entry: ActivityEntry }) {
  const agent = useAgentName(entry.agentId)
  const tone = isVoid(entry) ? 'bad' : entry.direction === 'in' ? 'in' : undefined
  const amount = shownAmount(entry)
  return (
    <li>
      <Link class="item" href={`/activity?entry=${encodeURIComponent(entry.id)}`}>
        <IconGlyph name={chooseIcon(entry)} kind={tone} />
        <span class="item__main">
          <span class="item__name">
            <span class="trim">
              <Untrusted>{titleEntry(entry)}</Untrusted>
            </span>
          </span>
          <span class="item__sub trim">
            {formatWhen(entry.at)} · {nameKind(entry.kind)}
            {agent !== null && (
              <>
                {' · '}
                <Untrusted>{agent}</Untrusted>
              </>
            )}
          </span>
        </span>
        <span class="item__end">
          {amount !== null && (
            <Amount
              amount={amount}
              asset={entry.asset}
              direction={entry.direction === 'in' ? 'in' : entry.direction === 'out' ? 'out' : 'none'}
              isVoid={isVoid(entry)}
            />
          )}
          <Status status={entry.status} />
        </span>
      </Link>
    </li>
  )
}
