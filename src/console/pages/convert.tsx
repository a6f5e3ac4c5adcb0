/** A swap by the owner: one amount, what arrives at least, what it costs, and the outcome in place. */
import { useEffect, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { Swap, SwapsQuoteRequest, SwapsQuoteResponse } from '../../client/operations.ts'
import { ActionButton, Copy, Field, Form } from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { PageHead, Panel } from '../components/panel.tsx'
import { deployment } from '../data/account.ts'
import { bursar, describeError, withProof } from '../data/gateway.ts'
import { wallet } from '../data/money.ts'
import { signIntent } from '../data/passkeys.ts'
import { payOnce, type Signed } from '../data/payments.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { compareDecimals, formatDecimal, formatUsd, isAmount } from '../words/money.ts'

type Token = 'USDC' | 'USDT' | 'EURC' | 'PYUSD'
const tokens: readonly Token[] = ['USDC', 'EURC', 'USDT', 'PYUSD']

export function ConvertPage() {
  const [made, setMade] = useState<Swap | null>(null)
  if (made !== null) return <Converted swap={made} again={() => setMade(null)} />
  return <ConvertForm done={setMade} />
}

function ConvertForm({ done }: { readonly done: (swap: Swap) => void }) {
  const mine = loadedValue(useResource(wallet))
  const [amount, setAmount] = useState('')
  const [sell, setSell] = useState<Token>('USDC')
  const [buy, setBuy] = useState<Token>('EURC')
  const have = mine?.balances.find(
    (balance) => balance.token === sell && balance.chain === deployment.chain,
  )?.amount
  const given = amount.trim()
  const isEntered = isAmount(given)
  const isTooMuch = have !== undefined && isEntered && compareDecimals(given, have) > 0
  const { quote, error, renew } = useSwapQuote(
    isEntered && !isTooMuch ? { amountIn: given, fromToken: sell, toToken: buy } : null,
  )
  const isReady = quote !== null
  const amountError = isTooMuch
    ? `You have ${formatDecimal(have)} ${sell}.`
    : given !== '' && !isEntered
      ? 'An amount such as 12.50, with at most six decimals.'
      : (error ?? undefined)
  const turn = () => {
    setSell(buy)
    setBuy(sell)
  }
  const convert = async () => {
    if (quote === null) return
    const terms = { sell, buy, amount: given }
    const answer = await payOnce('swaps.execute', terms, async ({ idempotencyKey, sign }) => {
      const signed = await sign(() => agree(quote.id))
      return withProof(() => bursar.swaps.execute(signed, { idempotencyKey }))
    }).catch((failure: unknown) => {
      renew()
      throw failure
    })
    done(answer)
    await wallet.reload()
  }
  return (
    <>
      <PageHead title="Convert">
        One stablecoin to another, in your wallet. The gateway pays the gas.
      </PageHead>
      <Panel>
        <div class="panel__body stack">
          <Form>
            <div class="cols cols--even">
              <Field
                label="You convert"
                of="amountIn"
                error={amountError}
                hint={have === undefined ? undefined : `${formatDecimal(have)} ${sell} available`}
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
              <TokenField
                label="From"
                value={sell}
                choose={(token) => (token === buy ? turn() : setSell(token))}
              />
            </div>
            <div class="cols cols--even cols--end">
              <button class="btn" type="button" onClick={turn}>
                <Icon name="activity" small />
                Turn around
              </button>
              <TokenField
                label="To"
                value={buy}
                choose={(token) => (token === sell ? turn() : setBuy(token))}
              />
            </div>
            {quote !== null && <Terms quote={quote} />}
            <ActionButton
              kind="primary"
              size="lg"
              isFull
              icon="retry"
              run={convert}
              disabled={!isReady}
              busy="Converting"
            >
              {quote === null ? 'Convert' : `Convert ${formatDecimal(given)} ${sell}`}
            </ActionButton>
          </Form>
          <p class="small faint">
            At least the amount above arrives, or nothing moves at all. Nobody but this conversion gets to
            touch your wallet.
          </p>
        </div>
      </Panel>
    </>
  )
}

function TokenField({
  label,
  value,
  choose,
}: {
  readonly label: string
  readonly value: Token
  readonly choose: (token: Token) => void
}) {
  return (
    <Field label={label}>
      {(props) => (
        <select
          class="input"
          value={value}
          onChange={(event) => choose(tokens[event.currentTarget.selectedIndex] ?? value)}
          {...props}
        >
          {tokens.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      )}
    </Field>
  )
}

function Terms({ quote }: { readonly quote: SwapsQuoteResponse }) {
  const { toToken, amountOut, amountOutMin, fees, durationSec, priceImpactBps } = quote
  const impact = priceImpactBps ?? 0
  return (
    <dl class="facts facts--end" aria-live="polite">
      <dt>You get, about</dt>
      <dd>
        <strong>
          {formatDecimal(amountOut)} {toToken}
        </strong>
      </dd>
      <dt>At least</dt>
      <dd>
        {formatDecimal(amountOutMin)} {toToken}
      </dd>
      {fees.map(({ name, amountUsd }) => (
        <>
          <dt key={`${name} name`}>Fee</dt>
          <dd key={name}>{formatUsd(amountUsd)}</dd>
        </>
      ))}
      <dt>Against the reference rate</dt>
      <dd>{impact === 0 ? 'no loss' : `${(impact / 100).toFixed(2)} % less`}</dd>
      <dt>Takes</dt>
      <dd>about {durationSec < 60 ? `${durationSec} seconds` : `${Math.round(durationSec / 60)} minutes`}</dd>
    </dl>
  )
}

/** Fixes the quote that was shown, with the owner's signature where a passkey owns the wallet. */
async function agree(quoteId: string): Promise<Signed> {
  let own = quoteId
  const signed = await signIntent(async () => {
    const intent = await bursar.swaps.orders.intent({ quoteId })
    own = intent.quoteId
    return intent
  })
  return { ...signed, quoteId: own }
}

function Converted({ swap, again }: { readonly swap: Swap; readonly again: () => void }) {
  const { sent, sell, received, minReceived, buy, transactions } = swap
  const isDone = received !== null
  const [transaction] = transactions
  return (
    <Panel>
      <div class="panel__body ask">
        <div class="done">
          <span class="done__mark">
            <Icon name={isDone ? 'check' : 'clock'} />
          </span>
          <h1 tabIndex={-1} ref={(heading) => heading?.focus()}>
            {isDone ? `You got ${formatDecimal(received)} ${buy.token}` : 'On its way'}
          </h1>
          <p class="soft wrap">
            for {formatDecimal(sent)} {sell.token}
            {!isDone && `, at least ${formatDecimal(minReceived)} ${buy.token}`}
          </p>
          {!isDone && (
            <p class="small soft">
              Not confirmed yet. Do not convert again: the statement shows the outcome.
            </p>
          )}
        </div>
        {transaction !== undefined && (
          <div class="stack stack--tight">
            <span class="label">Transaction</span>
            <Copy text={transaction.hash} what="the transaction hash" />
          </div>
        )}
        <div class="row row--wrap">
          <Link class="btn grow" href="/activity">
            See it in activity
          </Link>
          <button class="btn btn--primary grow" type="button" onClick={again}>
            Convert again
          </button>
        </div>
      </div>
    </Panel>
  )
}

/** Pause in typing after which a quote is asked for. */
const QUIET_MS = 300
/** How long before its expiry a quote is made anew. */
const RENEW_MS = 5_000

const chains = [
  ...['base-sepolia', 'arbitrum-sepolia', 'base', 'arbitrum'],
  ...['optimism', 'polygon', 'ethereum'],
] as const satisfies readonly SwapsQuoteRequest['fromChain'][]

/** The chain of the wallet, where everything is converted. */
function findChain(): SwapsQuoteRequest['fromChain'] {
  return chains.find((name) => name === deployment.chain) ?? 'base'
}

interface AskedQuote {
  readonly amountIn: string
  readonly fromToken: Token
  readonly toToken: Token
}

/** Quotes what is entered, and anew shortly before the quote expires. @param asked null: nothing to quote. */
function useSwapQuote(asked: AskedQuote | null) {
  const [version, setVersion] = useState(0)
  const [shown, show] = useState<{
    readonly name: string
    readonly quote: SwapsQuoteResponse | null
    readonly error: string | null
  } | null>(null)
  const name = JSON.stringify(asked)
  const renew = () => setVersion((last) => last + 1)
  useEffect(() => {
    if (asked === null) return
    let isCurrent = true
    let renewal: ReturnType<typeof setTimeout> | undefined
    const timer = setTimeout(async () => {
      try {
        const quote = await bursar.swaps.quote({ ...asked, fromChain: findChain() })
        if (!isCurrent) return
        const isOffered = quote.executable
        show({
          name,
          quote: isOffered ? quote : null,
          error: isOffered ? null : `Nobody converts ${asked.fromToken} to ${asked.toToken} here right now.`,
        })
        renewal = setTimeout(renew, Date.parse(quote.expiresAt) - Date.now() - RENEW_MS)
      } catch (failure) {
        if (isCurrent) show({ name, quote: null, error: describeError(failure) })
      }
    }, QUIET_MS)
    return () => {
      isCurrent = false
      clearTimeout(timer)
      clearTimeout(renewal)
    }
  }, [name, version])
  const isShown = shown !== null && shown.name === name
  return { quote: isShown ? shown.quote : null, error: isShown ? shown.error : null, renew }
}
