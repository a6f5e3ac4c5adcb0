/** Bank accounts that the owner pays out to, and the payout itself. */
import { useEffect, useState } from 'preact/hooks'
import type {
  BankingPayoutsQuoteRequest,
  BankingPayoutsQuoteResponse,
  BankingRecipientsCreateRequest,
  Payout,
  Recipient,
} from '../../client/operations.ts'
import { bursar, withProof } from '../data/gateway.ts'
import { portfolio, recipients, wallet } from '../data/money.ts'
import { signIntent } from '../data/passkeys.ts'
import { payOnce, type Signed } from '../data/payments.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { formatDecimal, isAmount } from '../words/money.ts'
import { chooseHue, extractInitials } from '../words/names.ts'
import { formatMoment } from '../words/time.ts'
import { ActionButton, Dialog, DialogButtons, Field, Segments } from './controls.tsx'
import { Failed, SkeletonRows, toast, wordsOfFailure } from './messages.tsx'
import { Panel } from './panel.tsx'
import { Untrusted } from './quote.tsx'

export function Recipients() {
  const state = useResource(recipients)
  const [paying, pay] = useState<Recipient | null>(null)
  const [isAdding, add] = useState(false)
  const shown = loadedValue(state)?.recipients ?? []
  return (
    <Panel
      title="Bank accounts you pay out to"
      more={
        <button class="linkbtn" type="button" onClick={() => add(true)}>
          Add
        </button>
      }
    >
      {state.status === 'loading' && <SkeletonRows rows={1} />}
      {state.status === 'failed' && (
        <Failed subject="The list of recipients" error={state.error} retry={recipients.reload} />
      )}
      {state.status === 'ready' && shown.length === 0 && (
        <p class="panel__body soft">
          None yet. A payout leaves from your cash or your USDC and arrives in a bank account.
        </p>
      )}
      <ul class="rows">
        {shown.map((recipient) => (
          <li key={recipient.id}>
            <div class="item">
              <span class={`glyph glyph--round glyph--${chooseHue(recipient.id)}`} aria-hidden="true">
                {extractInitials(recipient.name ?? '')}
              </span>
              <span class="item__main">
                <span class="item__name">
                  <span class="trim">
                    <Untrusted>{recipient.name ?? 'Erased'}</Untrusted>
                  </span>
                </span>
                <span class="item__sub">
                  {recipient.currency} · {recipient.country} •• {recipient.last4}
                </span>
              </span>
              <button class="btn btn--sm" type="button" onClick={() => pay(recipient)}>
                Pay out
              </button>
            </div>
          </li>
        ))}
      </ul>
      {paying !== null && <PayDialog recipient={paying} close={() => pay(null)} />}
      {isAdding && <AddDialog close={() => add(false)} />}
    </Panel>
  )
}

const sources = [
  ['USD', 'USD cash'],
  ['USDC', 'USDC'],
] as const

function PayDialog({ recipient, close }: { readonly recipient: Recipient; readonly close: () => void }) {
  const { id: recipientId, currency } = recipient
  const [side, setSide] = useState<'arrives' | 'leaves'>('arrives')
  const [amount, setAmount] = useState('')
  const [asset, setAsset] = useState<'USD' | 'USDC'>('USD')
  const [reference, setReference] = useState('')
  const [sent, setSent] = useState<Payout | null>(null)
  const given = amount.trim()
  const said = side === 'arrives' ? { recipientAmount: given } : { amount: given }
  const { quote, error, renew } = usePayoutQuote(
    isAmount(given) && sent === null ? { recipientId, asset, ...said } : null,
  )
  const payOut = async () => {
    if (quote === null) return
    const words = reference.trim()
    const terms = { recipientId, asset, ...(words === '' ? {} : { reference: words }) }
    const answer = await payOnce('banking.payouts.create', { ...terms, ...said }, async (attempt) => {
      const { quoteId, ...signed } = await attempt.sign(() => agree(terms, quote))
      const agreed = quoteId === undefined ? { amount: quote.amount } : { quoteId }
      return withProof(() => bursar.banking.payouts.create({ ...terms, ...agreed, ...signed }, attempt))
    }).catch((failure: unknown) => {
      renew()
      throw failure
    })
    setSent(answer)
    await Promise.all([wallet.reload(), portfolio.reload()])
  }
  if (sent !== null)
    return (
      <Dialog title="The payout is on its way" close={close}>
        <Terms terms={sent} />
        <div class="dialog__buttons">
          <button class="btn btn--primary" type="button" onClick={close}>
            Done
          </button>
        </div>
      </Dialog>
    )
  return (
    <Dialog
      title={
        <>
          Pay out to <Untrusted>{recipient.name ?? ''}</Untrusted>
        </>
      }
      close={close}
    >
      <p>
        To the {currency} account that ends in {recipient.last4}. The name is screened before anything leaves.
      </p>
      <Segments
        label="The amount is what"
        options={[
          ['arrives', 'They get'],
          ['leaves', 'You pay'],
        ]}
        value={side}
        choose={setSide}
      />
      <Field
        label={side === 'arrives' ? `They get, in ${currency}` : `You pay, in ${asset}`}
        hint={side === 'arrives' ? 'The fee comes on top.' : 'The fee is part of it.'}
        of={side === 'arrives' ? 'recipientAmount' : 'amount'}
        error={error ?? undefined}
      >
        {(props) => (
          <input
            class="input num"
            inputMode="decimal"
            autoComplete="off"
            value={amount}
            onInput={(event) => setAmount(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <Segments label="Paid from" options={sources} value={asset} choose={setAsset} />
      <Field label="Reference (optional)" of="reference">
        {(props) => (
          <input
            class="input"
            maxLength={35}
            value={reference}
            onInput={(event) => setReference(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      {quote !== null && <Terms terms={quote} isEstimate={quote.quoteId === null} />}
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={payOut} busy="Paying out" disabled={quote === null}>
          {quote === null ? 'Pay out' : `Pay ${formatDecimal(quote.amount)} ${quote.asset}`}
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

/** Fixes what a payout is sent on: the quote that was shown, with the owner's signature where a passkey owns the wallet. */
async function agree(
  terms: { readonly recipientId: string; readonly asset: 'USD' | 'USDC'; readonly reference?: string },
  { quoteId, amount, asset }: BankingPayoutsQuoteResponse,
): Promise<Signed> {
  const agreed = quoteId === null ? {} : { quoteId }
  if (asset === 'USD') return agreed
  const asked = { ...terms, asset, ...(quoteId === null ? { amount } : { quoteId }) }
  const signed = await signIntent(() => withProof(() => bursar.banking.payouts.intent(asked)))
  return { ...agreed, ...signed }
}

/** Shows the amount that leaves and the amount that arrives. */
function Terms({
  terms,
  isEstimate = false,
}: {
  readonly terms: Pick<Payout, 'amount' | 'asset' | 'fee' | 'rate' | 'recipientAmount' | 'currency' | 'eta'>
  readonly isEstimate?: boolean
}) {
  const { amount, asset, fee, rate, recipientAmount, currency, eta } = terms
  return (
    <dl class="facts facts--end" aria-live="polite">
      <dt>You pay</dt>
      <dd>
        {formatDecimal(amount)} {asset}
      </dd>
      <dt>Fee in it</dt>
      <dd>
        {formatDecimal(fee)} {asset}
      </dd>
      <dt>Rate</dt>
      <dd>
        1 {asset} = {rate} {currency}
      </dd>
      <dt>{isEstimate ? 'Arrives, about' : 'Arrives'}</dt>
      <dd>
        <strong>
          {formatDecimal(recipientAmount)} {currency}
        </strong>
      </dd>
      <dt>Expected</dt>
      <dd>{formatMoment(eta)}</dd>
    </dl>
  )
}

/** Pause in typing after which a quote is asked for. */
const QUIET_MS = 300

/** Quotes what is entered, and anew shortly before the quote expires. @param asked null: nothing to quote. */
function usePayoutQuote(asked: BankingPayoutsQuoteRequest | null) {
  const [version, setVersion] = useState(0)
  const [shown, show] = useState<{
    readonly name: string
    readonly quote: BankingPayoutsQuoteResponse | null
    readonly error: string | null
  } | null>(null)
  const name = JSON.stringify(asked)
  const renew = () => setVersion((last) => last + 1)
  useEffect(() => {
    if (asked === null) return
    let timer = setTimeout(async () => {
      const answer = await bursar.banking.payouts.quote(asked).then(
        (quote) => ({ name, quote, error: null }),
        (failure: unknown) => ({ name, quote: null, error: wordsOfFailure(failure) }),
      )
      if (isOver) return
      show(answer)
      const expiresAt = answer.quote?.expiresAt ?? null
      if (expiresAt !== null) timer = setTimeout(renew, Date.parse(expiresAt) - Date.now() - 30_000)
    }, QUIET_MS)
    let isOver = false
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [name, version])
  const isCurrent = shown !== null && shown.name === name
  return { quote: isCurrent ? shown.quote : null, error: isCurrent ? shown.error : null, renew }
}

type Account = BankingRecipientsCreateRequest['account']

/** Members of a bank account by currency, as its form asks for them. */
const forms = {
  USD: [
    ['routingNumber', 'Routing number'],
    ['accountNumber', 'Account number'],
  ],
  EUR: [
    ['iban', 'IBAN'],
    ['bic', 'BIC (optional)'],
  ],
  GBP: [
    ['sortCode', 'Sort code'],
    ['accountNumber', 'Account number'],
  ],
} as const satisfies Record<string, readonly (readonly [keyof Account, string])[]>

type Currency = keyof typeof forms

const currencies = [
  ['EUR', 'Euro'],
  ['USD', 'US dollars'],
  ['GBP', 'British pounds'],
] as const

function AddDialog({ close }: { readonly close: () => void }) {
  const [currency, setCurrency] = useState<Currency>('EUR')
  const [name, setName] = useState('')
  const [country, setCountry] = useState('')
  const [numbers, setNumbers] = useState<Readonly<Record<string, string>>>({})
  const add = async () => {
    const given = forms[currency].flatMap(([member]) => {
      const text = (numbers[member] ?? '').replace(/[\s-]/g, '')
      return text === '' ? [] : [[member, text] as const]
    })
    const account: Account = {
      ...Object.fromEntries(given),
      ...(currency === 'USD' ? { type: 'checking' as const } : {}),
    }
    const request = { currency, name: name.trim(), country: country.trim().toUpperCase(), account }
    await withProof(() => bursar.banking.recipients.create(request))
    await recipients.reload()
    close()
    toast('The recipient is added.')
  }
  return (
    <Dialog title="New recipient" close={close}>
      <Segments label="Currency" options={currencies} value={currency} choose={setCurrency} />
      <Field label="Name of the holder" of="name">
        {(props) => (
          <input
            class="input"
            maxLength={140}
            autofocus
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <Field label="Country" of="country" hint="Two letters, such as DE, GB or US.">
        {(props) => (
          <input
            class="input"
            maxLength={2}
            autoComplete="country"
            value={country}
            onInput={(event) => setCountry(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      {forms[currency].map(([member, label]) => (
        <Field key={member} label={label} of={`account.${member}`}>
          {(props) => (
            <input
              class="input num"
              autoComplete="off"
              spellcheck={false}
              value={numbers[member] ?? ''}
              onInput={(event) => setNumbers({ ...numbers, [member]: event.currentTarget.value })}
              {...props}
            />
          )}
        </Field>
      ))}
      <DialogButtons close={close}>
        <ActionButton
          kind="primary"
          run={add}
          busy="Adding"
          disabled={name.trim() === '' || country.length !== 2}
        >
          Add
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}
