/** A transfer by the owner: what is sent, the person's signature, and the outcome in place. */

import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { WalletsTransferResponse } from '../../client/operations.ts'
import { ActionButton, Copy, Field, Form } from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { PageHead, Panel } from '../components/panel.tsx'
import { Untrusted } from '../components/quote.tsx'
import { deployment } from '../data/account.ts'
import { bursar, withProof } from '../data/gateway.ts'
import { contacts, wallet } from '../data/money.ts'
import { signIntent } from '../data/passkeys.ts'
import { payOnce } from '../data/payments.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { compareDecimals, formatDecimal, isAmount } from '../words/money.ts'
import { isAddress } from '../words/names.ts'
import { plainText } from '../words/plain-text.ts'

type Token = 'USDC' | 'USDT' | 'EURC' | 'PYUSD'
const tokens: readonly Token[] = ['USDC', 'EURC', 'USDT', 'PYUSD']

export function SendPage() {
  const [sent, setSent] = useState<WalletsTransferResponse | null>(null)
  if (sent !== null) return <Sent sent={sent} again={() => setSent(null)} />
  return <SendForm done={setSent} />
}

function SendForm({ done }: { readonly done: (sent: WalletsTransferResponse) => void }) {
  const mine = loadedValue(useResource(wallet))
  const known = loadedValue(useResource(contacts))?.contacts ?? []
  const payable = known.flatMap(({ id, name, addresses }) => {
    const place =
      addresses.find(({ chain }) => chain === deployment.chain) ??
      addresses.find(({ chain }) => chain === null)
    return place === undefined ? [] : [{ id, name: name ?? '', address: place.address }]
  })
  const [destination, setDestination] = useState('')
  const [amount, setAmount] = useState('')
  const [token, setToken] = useState<Token>('USDC')
  const have = mine?.balances.find(
    (balance) => balance.token === token && balance.chain === deployment.chain,
  )?.amount
  const payee = destination.trim()
  const addressError =
    payee === '' || isAddress(payee)
      ? undefined
      : 'An address begins with 0x and has 40 more letters and digits.'
  const named = known.find(({ addresses }) =>
    addresses.some(({ address }) => address.toLowerCase() === payee.toLowerCase()),
  )
  const isEntered = isAmount(amount.trim())
  const amountError =
    amount.trim() === '' || isEntered
      ? have !== undefined && isEntered && compareDecimals(amount.trim(), have) > 0
        ? `You have ${formatDecimal(have)} ${token}.`
        : undefined
      : 'An amount such as 12.50, with at most six decimals.'
  const isReady = isAddress(payee) && isEntered && amountError === undefined
  const send = async () => {
    const transfer = { destination: payee, amount: amount.trim(), token }
    done(
      await payOnce('wallets.transfer', transfer, async ({ idempotencyKey, sign }) => {
        const signed = await sign(
          // The sandbox signs for a wallet without a passkey.
          async () =>
            (await signIntent(() => bursar.wallets.transferIntent(transfer))) ?? { signature: 'sandbox' },
        )
        return withProof(() => bursar.wallets.transfer({ ...transfer, ...signed }, { idempotencyKey }))
      }),
    )
    await wallet.reload()
  }
  return (
    <>
      <PageHead title="Send">From your wallet to an address. The gateway pays the gas.</PageHead>
      <Panel>
        <div class="panel__body stack">
          <Form>
            {payable.length > 0 && (
              <Field label="Contact">
                {(props) => (
                  <select
                    class="input"
                    value={payable.find(({ address }) => address === payee)?.id ?? ''}
                    onChange={({ currentTarget: { value } }) =>
                      setDestination(payable.find(({ id }) => id === value)?.address ?? '')
                    }
                    {...props}
                  >
                    <option value="">None: an address</option>
                    {payable.map(({ id, name }) => (
                      <option key={id} value={id}>
                        {plainText(name)}
                      </option>
                    ))}
                  </select>
                )}
              </Field>
            )}
            <Field
              label="To"
              of="destination"
              error={addressError}
              hint={named === undefined ? undefined : <Untrusted>{named.name ?? ''}</Untrusted>}
            >
              {(props) => (
                <input
                  class="input mono"
                  placeholder="0x…"
                  autoComplete="off"
                  spellcheck={false}
                  value={destination}
                  onInput={(event) => setDestination(event.currentTarget.value)}
                  {...props}
                />
              )}
            </Field>
            <div class="cols cols--even">
              <Field
                label="Amount"
                of="amount"
                error={amountError}
                hint={have === undefined ? undefined : `${formatDecimal(have)} ${token} available`}
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
              <Field label="Currency">
                {(props) => (
                  <select
                    class="input"
                    value={token}
                    onChange={(event) => setToken(tokens[event.currentTarget.selectedIndex] ?? 'USDC')}
                    {...props}
                  >
                    {tokens.map((one) => (
                      <option key={one}>{one}</option>
                    ))}
                  </select>
                )}
              </Field>
            </div>
            <ActionButton
              kind="primary"
              size="lg"
              isFull
              icon="send"
              run={send}
              disabled={!isReady}
              busy="Sending"
            >
              {isReady ? `Send ${formatDecimal(amount.trim())} ${token}` : 'Send'}
            </ActionButton>
          </Form>
          <p class="small faint">
            A transfer cannot be taken back. Your passkey signs exactly this amount and address.
          </p>
        </div>
      </Panel>
    </>
  )
}

function Sent({ sent, again }: { readonly sent: WalletsTransferResponse; readonly again: () => void }) {
  const isDone = sent.status === 'confirmed'
  return (
    <Panel>
      <div class="panel__body ask">
        <div class="done">
          <span class="done__mark">
            <Icon name={isDone ? 'check' : 'clock'} />
          </span>
          <h1 tabIndex={-1} ref={(heading) => heading?.focus()}>
            {isDone ? 'Sent' : 'On its way:'} {formatDecimal(sent.amount)} {sent.token}
          </h1>
          <p class="soft wrap">
            to <span class="mono small">{sent.destination}</span>
          </p>
          {!isDone && (
            <p class="small soft">
              Not confirmed yet. Do not send it again: the statement shows the outcome.
            </p>
          )}
        </div>
        {sent.transactionHash !== null && (
          <div class="stack stack--tight">
            <span class="label">Transaction</span>
            <Copy text={sent.transactionHash} what="the transaction hash" />
          </div>
        )}
        <div class="row row--wrap">
          <Link class="btn grow" href="/activity">
            See it in activity
          </Link>
          <button class="btn btn--primary grow" type="button" onClick={again}>
            Send another
          </button>
        </div>
      </div>
    </Panel>
  )
}
