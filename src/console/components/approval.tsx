/** Parts of an approval that the inbox and the page of one share. */
import type { Approval } from '../../client/operations.ts'
import { agentById } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import type { CallFacts } from '../words/calls.ts'
import { formatDecimal } from '../words/money.ts'
import { isAddress, shortAddress } from '../words/names.ts'
import { plainText, shortText } from '../words/plain-text.ts'
import { Chip } from './marks.tsx'
import { Untrusted } from './quote.tsx'

/** The agent's own name; `An agent` until it is known. */
export function useAgentName(agentId: string): string {
  const agent = loadedValue(useResource(agentById(agentId)))
  return agent === undefined ? 'An agent' : shortText(agent.name)
}

/** An address with both ends standing out, in full: money is approved for it. */
export function FullAddress({ address }: { readonly address: string }) {
  if (!isAddress(address))
    return (
      <div class="strong wrap">
        <Untrusted>{plainText(address)}</Untrusted>
      </div>
    )
  return (
    <div class="address">
      <b>{address.slice(0, 6)}</b>
      {address.slice(6, -4)}
      <b>{address.slice(-4)}</b>
    </div>
  )
}

/** `Send 3.50 USDC to 0x0000…dEaD`, with the amount standing out and the payee isolated. */
export function CallLine({
  facts,
  contact = null,
}: {
  readonly facts: CallFacts
  /** Name of the contact that is paid. */
  readonly contact?: string | null
}) {
  const { verb, amount, asset, preposition, party } = facts
  return (
    <>
      {verb.charAt(0).toUpperCase() + verb.slice(1)}
      {amount !== null && (
        <>
          {' '}
          <b class="num">
            {formatDecimal(amount)} {asset}
          </b>
        </>
      )}
      {party !== null && (
        <>
          {' '}
          {preposition}{' '}
          {contact !== null && (
            <>
              <b>
                <Untrusted>{shortText(contact)}</Untrusted>
              </b>{' '}
            </>
          )}
          <span class={isAddress(party) ? 'mono small' : undefined}>
            <Untrusted>{shortText(shortAddress(party))}</Untrusted>
          </span>
        </>
      )}
    </>
  )
}

/** Marks of a request: above the agent's limits, and a payee that it never paid, where the gateway said so. */
export function RequestMarks({ approval }: { readonly approval: Approval }) {
  const isNew = approval.violations.some(({ rule }) => rule === 'new_payee_cooldown')
  return (
    <>
      {isNew && <FirstTime />}
      {approval.violations.length > 0 && (
        <Chip kind="bad" icon="warning">
          Above its limits
        </Chip>
      )}
    </>
  )
}

export function FirstTime() {
  return (
    <Chip kind="warn" icon="new">
      First time paid
    </Chip>
  )
}
