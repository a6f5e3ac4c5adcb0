/** Where money arrives: bank details to give to a payer, and the wallet's address. */
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { VirtualAccount } from '../../client/operations.ts'
import { BankCustomerPanel } from '../components/bank-customer.tsx'
import { ActionButton, Copy, CopyButton, Dialog, DialogButtons, Field } from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { Chip } from '../components/marks.tsx'
import { Banner, Empty, Failed, SkeletonRows, toast } from '../components/messages.tsx'
import { NotReady } from '../components/not-ready.tsx'
import { Columns, PageHead, Panel } from '../components/panel.tsx'
import { Recipients } from '../components/recipients.tsx'
import { Requests } from '../components/requests.tsx'
import { bursar } from '../data/gateway.ts'
import { accounts, portfolio, wallet } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { compareDecimals, formatDecimal, formatUsd, subtractDecimals } from '../words/money.ts'
import { nameChain } from '../words/names.ts'

const currencies = {
  USD: ['$', 'US dollars'],
  EUR: ['€', 'Euro'],
  GBP: ['£', 'British pounds'],
  INR: ['₹', 'Indian rupees'],
} as const

type Currency = keyof typeof currencies

export function AccountsPage() {
  const state = useResource(accounts)
  const [isOpening, setOpening] = useState(false)
  return (
    <>
      <PageHead
        title="Accounts"
        actions={
          <>
            <Link class="btn" href="/accounts/send">
              <Icon name="send" small />
              Send
            </Link>
            <Link class="btn" href="/accounts/convert">
              <Icon name="retry" small />
              Convert
            </Link>
            <button class="btn btn--primary" type="button" onClick={() => setOpening(true)}>
              <Icon name="plus" small />
              New account
            </button>
          </>
        }
      >
        Give these details to your payers. What arrives lands here.
      </PageHead>
      <BankCustomerPanel />
      <NotReady state={state} subject="The list of accounts" retry={accounts.reload} />
      {state.status === 'ready' &&
        (state.value.accounts.length === 0 ? (
          <Panel>
            <Empty icon="bank" title="No bank account yet">
              An account in your name takes bank transfers, as cash or turned into a stablecoin.
            </Empty>
          </Panel>
        ) : (
          <div class="cols cols--even">
            {state.value.accounts.map((account) => (
              <BankAccount key={account.id} account={account} />
            ))}
          </div>
        ))}
      <Columns
        main={
          <>
            <WalletPanel />
            <Requests />
          </>
        }
        side={<Recipients />}
      />
      {isOpening && <OpenAccount close={() => setOpening(false)} />}
    </>
  )
}

/** Names and values to copy, in the order in which bank forms ask for them. */
function listRows({
  accountHolderName,
  bankName,
  instructions,
  reference,
}: VirtualAccount): [string, string][] {
  const numbers: [string, string | undefined][] = [
    ['Routing number', 'routingNumber' in instructions ? instructions.routingNumber : undefined],
    ['IBAN', 'iban' in instructions ? (instructions.iban.match(/.{1,4}/g)?.join(' ') ?? '') : undefined],
    ['BIC', 'bic' in instructions ? instructions.bic : undefined],
    ['Sort code', 'sortCode' in instructions ? instructions.sortCode : undefined],
    ['IFSC', 'ifsc' in instructions ? instructions.ifsc : undefined],
    ['Account number', 'accountNumber' in instructions ? instructions.accountNumber : undefined],
    ['UPI', 'vpa' in instructions ? instructions.vpa : undefined],
  ]
  return [
    ['Holder', accountHolderName],
    ...numbers.flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, value]])),
    ['Reference', reference],
    ['Bank', bankName],
  ]
}

function BankAccount({ account }: { readonly account: VirtualAccount }) {
  const [sign, name] = currencies[account.currency]
  const rows = listRows(account)
  const all = rows.map(([row, value]) => `${row}: ${value}`).join('\n')
  return (
    <section class="panel" aria-label={name}>
      <div class="panel__head">
        <div class="row">
          <span class="glyph glyph--round glyph--sm" aria-hidden="true">
            {sign}
          </span>
          <h2>{name}</h2>
          {account.status !== 'active' && (
            <Chip kind="warn" icon="clock">
              {account.status === 'pending' ? 'Being opened' : 'Closed'}
            </Chip>
          )}
        </div>
        <CopyButton text={all} what={`all details of the account in ${name}`} isNamed />
      </div>
      <div class="panel__body stack">
        <Balance account={account} />
        <dl class="copyrows">
          {rows.map(([row, value]) => (
            <div key={row}>
              <dt>{row}</dt>
              <dd class={/number|IBAN|BIC|code|IFSC|UPI|Reference/.test(row) ? 'mono' : ''}>{value}</dd>
              <dd>
                <CopyButton
                  text={row === 'IBAN' ? value.replaceAll(' ', '') : value}
                  what={row.toLowerCase()}
                />
              </dd>
            </div>
          ))}
        </dl>
        <p class="small faint">
          By {account.instructions.rails.map((rail) => rail.replaceAll('_', ' ').toUpperCase()).join(', ')}.
          Keep the reference: it tells the bank whose money it is.
        </p>
      </div>
    </section>
  )
}

/** Shows the balance that the account's deposits have become: cash, or a stablecoin in the wallet. */
function Balance({ account: { destination, currency } }: { readonly account: VirtualAccount }) {
  const cash = loadedValue(useResource(portfolio))
  const balances = loadedValue(useResource(wallet))?.balances
  if (destination !== null) {
    const { token, chain } = destination
    const balance = balances?.find((one) => one.token === token && one.chain === chain)
    return (
      <div class="stat">
        {balance !== undefined && (
          <span class="figure">
            {formatDecimal(balance.amount)}
            <span class="figure__minor"> {token}</span>
          </span>
        )}
        <span class="small faint">What arrives becomes {token} in your wallet</span>
      </div>
    )
  }
  if (currency !== 'USD' || cash === undefined) return <p class="small soft">What arrives stays cash.</p>
  const held = subtractDecimals(cash.cash, cash.buyingPower)
  return (
    <div class="stat">
      <span class="figure">{formatUsd(cash.buyingPower)}</span>
      <span class="small faint num">
        What arrives stays cash{compareDecimals(held, '0') > 0 && ` · ${formatDecimal(held)} held`}
      </span>
    </div>
  )
}

function WalletPanel() {
  const state = useResource(wallet)
  if (state.status === 'failed')
    return (
      <Panel title="Wallet">
        <Failed subject="The wallet" error={state.error} retry={wallet.reload} />
      </Panel>
    )
  if (state.status === 'loading')
    return (
      <Panel title="Wallet">
        <SkeletonRows rows={4} />
      </Panel>
    )
  const { balances, safeAddress, purse } = state.value
  const missing = balances.filter(({ shortfall }) => shortfall !== undefined)
  const chains = [...new Set(balances.map(({ chain }) => chain))]
  return (
    <Panel title="Wallet">
      {missing.map(({ token, chain, shortfall }) => (
        <div class="panel__body" key={`${token} ${chain}`}>
          <Banner kind="bad" icon="warning">
            {formatDecimal(shortfall ?? '0')} {token} are booked here but missing on {nameChain(chain)}. They
            cannot be spent until that is settled.
          </Banner>
        </div>
      ))}
      <div class="tablewrap">
        <table class="table table--stack">
          <thead>
            <tr>
              <th scope="col">Asset</th>
              <th scope="col">Chain</th>
              <th scope="col" class="end">
                Available
              </th>
              <th scope="col" class="end">
                Held
              </th>
              <th scope="col" class="end">
                Worth
              </th>
            </tr>
          </thead>
          <tbody>
            {balances.map(({ token, chain, amount, held, usd }) => (
              <tr key={`${token} ${chain}`}>
                <td class="strong">
                  {token}
                  {chains.length > 1 && <span class="only-phone faint"> {nameChain(chain)}</span>}
                </td>
                <td class="soft only-wide">{nameChain(chain)}</td>
                <td class="end">{formatDecimal(amount)}</td>
                <td class="end faint">
                  {compareDecimals(held, '0') === 0 ? (
                    <span class="only-wide">0.00</span>
                  ) : (
                    formatDecimal(held)
                  )}
                  {compareDecimals(held, '0') > 0 && <span class="only-phone"> held</span>}
                </td>
                <td class="end soft only-wide">{usd === null ? '–' : formatUsd(usd)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {purse.length > 0 && (
        <div class="panel__foot">
          Set aside for purchases:{' '}
          {purse.map(({ amount, asset }) => `${formatDecimal(amount)} ${asset}`).join(', ')}.
        </div>
      )}
      <div class="panel__body stack stack--tight">
        <span class="label">Address</span>
        <Copy text={safeAddress} what="the wallet’s address" />
        <p class="small faint">
          The same wallet takes every asset above. Send only these, and only on{' '}
          {chains.map(nameChain).join(' and ')}.
        </p>
      </div>
    </Panel>
  )
}

function OpenAccount({ close }: { readonly close: () => void }) {
  const [currency, setCurrency] = useState<Currency>('EUR')
  const names = Object.entries(currencies)
  const open = async () => {
    await bursar.banking.create({ currency })
    await accounts.reload()
    close()
    toast(`The account in ${currencies[currency][1]} is being opened.`)
  }
  return (
    <Dialog title="New account" close={close}>
      <p>It is opened in your name. The details to copy appear as soon as the bank has them.</p>
      <Field label="Currency">
        {(props) => (
          <select
            class="input"
            value={currency}
            onChange={(event) => setCurrency(parseCurrency(event.currentTarget.value))}
            {...props}
          >
            {names.map(([code, [, name]]) => (
              <option key={code} value={code}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={open} busy="Opening">
          Open it
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

function parseCurrency(text: string): Currency {
  return text === 'USD' || text === 'GBP' || text === 'INR' ? text : 'EUR'
}
