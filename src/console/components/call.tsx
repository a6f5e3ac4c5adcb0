/** A call and its payee in a line. They read nothing, so that the views inside of hosts show them too. */
import type { CallFacts } from '../words/calls.ts'
import { formatDecimal } from '../words/money.ts'
import { isAddress, shortAddress } from '../words/names.ts'
import { plainText, shortText } from '../words/plain-text.ts'
import { Chip } from './marks.tsx'
import { Untrusted } from './quote.tsx'

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

export function FirstTime() {
  return (
    <Chip kind="warn" icon="new">
      First time paid
    </Chip>
  )
}
