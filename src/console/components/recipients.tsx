/** Bank accounts that the owner pays out to, and the payout itself. */
import { useState } from 'preact/hooks'
import type { BankingRecipientsCreateRequest, Payout, Recipient } from '../../client/operations.ts'
import { bursar, withProof } from '../data/gateway.ts'
import { portfolio, recipients, wallet } from '../data/money.ts'
import { payOnce } from '../data/payments.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { formatDecimal, isAmount } from '../words/money.ts'
import { hueOf, initialsOf } from '../words/names.ts'
import { formatMoment } from '../words/time.ts'
import { ActionButton, Dialog, DialogButtons, Field, Segments } from './controls.tsx'
import { Failed, SkeletonRows, toast } from './messages.tsx'
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
              <span class={`glyph glyph--round glyph--${hueOf(recipient.id)}`} aria-hidden="true">
                {initialsOf(recipient.name ?? '')}
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
  const [amount, setAmount] = useState('')
  const [asset, setAsset] = useState<'USD' | 'USDC'>('USD')
  const [reference, setReference] = useState('')
  const [sent, setSent] = useState<Payout | null>(null)
  const isReady = isAmount(amount.trim())
  const payOut = async () => {
    const words = reference.trim()
    const request = {
      recipientId: recipient.id,
      amount: amount.trim(),
      asset,
      ...(words === '' ? {} : { reference: words }),
    }
    setSent(
      await payOnce('banking.payouts.create', request, ({ idempotencyKey }) =>
        withProof(() => bursar.banking.payouts.create(request, { idempotencyKey })),
      ),
    )
    await Promise.all([wallet.reload(), portfolio.reload()])
  }
  if (sent !== null)
    return (
      <Dialog title="The payout is on its way" close={close}>
        <dl class="facts facts--end">
          <dt>You pay</dt>
          <dd>
            {formatDecimal(sent.amount)} {sent.asset}
          </dd>
          <dt>Fee in it</dt>
          <dd>
            {formatDecimal(sent.fee)} {sent.asset}
          </dd>
          <dt>Arrives</dt>
          <dd>
            {formatDecimal(sent.recipientAmount)} {sent.currency}
          </dd>
          <dt>Expected</dt>
          <dd>{formatMoment(sent.eta)}</dd>
        </dl>
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
        To the {recipient.currency} account that ends in {recipient.last4}. The name is screened before
        anything leaves.
      </p>
      <Field label="Amount" hint="The fee is part of it.">
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
      <Field label="Reference (optional)">
        {(props) => (
          <input
            class="input"
            maxLength={140}
            value={reference}
            onInput={(event) => setReference(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={payOut} busy="Paying out" disabled={!isReady}>
          {isReady ? `Pay out ${formatDecimal(amount.trim())} ${asset}` : 'Pay out'}
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
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
      <Field label="Name of the holder">
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
      <Field label="Country" hint="Two letters, such as DE, GB or US.">
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
        <Field key={member} label={label}>
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
