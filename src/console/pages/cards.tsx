/** The cards: what each may pay, what it paid, and its number for a minute. */

import { useEffect, useState } from 'preact/hooks'
import { Link, useParams } from 'wouter-preact'
import type { Card, CardTransaction, ListedCard, SingleUse } from '../../client/operations.ts'
import { AgentSelect } from '../components/agent-select.tsx'
import { Amount } from '../components/amount.tsx'
import { BudgetBurn } from '../components/burn.tsx'
import {
  ActionButton,
  CopyButton,
  Dialog,
  DialogButtons,
  Field,
  MoneyInput,
  Setting,
} from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { Chip, IconGlyph, Status } from '../components/marks.tsx'
import { Banner, Empty, Failed, SkeletonRows, toast } from '../components/messages.tsx'
import { NotReady } from '../components/not-ready.tsx'
import { Columns, PageHead, Panel, PanelLink } from '../components/panel.tsx'
import { Untrusted } from '../components/quote.tsx'
import { useNow } from '../components/use-now.ts'
import { deployment } from '../data/account.ts'
import { purchasesOfCard } from '../data/cards.ts'
import { bursar, withProof } from '../data/gateway.ts'
import { agents, cards } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { declineInWords, describeMerchant, nameCategory, singleUseState } from '../words/cards.ts'
import { compareDecimals, formatDecimal, formatUsd, subtractDecimals } from '../words/money.ts'
import { chooseHue } from '../words/names.ts'
import { formatLeft, formatWhen } from '../words/time.ts'

export function CardsPage() {
  const state = useResource(cards)
  const { id } = useParams<{ id?: string }>()
  const [isAdding, setAdding] = useState(false)
  const shown = loadedValue(state)?.cards ?? []
  const lasting = shown.filter((card) => !isOver(card))
  const over = shown.filter(isOver)
  const chosen = shown.find((card) => card.id === id) ?? lasting[0] ?? shown[0]
  const owed = loadedValue(state)?.owed ?? []
  return (
    <>
      <PageHead
        title="Cards"
        actions={
          <button class="btn btn--primary" type="button" onClick={() => setAdding(true)}>
            <Icon name="plus" small />
            New card
          </button>
        }
      >
        Every purchase is decided the moment it happens, by the card and by its agent’s policy.
      </PageHead>
      {owed.length > 0 && (
        <Banner kind="bad" icon="warning">
          You owe {owed.map(({ asset, amount }) => `${formatDecimal(amount)} ${asset}`).join(' and ')} from
          card purchases. It is collected from what comes in; until then the cards decline.
        </Banner>
      )}
      <NotReady state={state} subject="The list of cards" retry={cards.reload} />
      {state.status === 'ready' && chosen === undefined && (
        <Panel>
          <Empty icon="card" title="No card yet">
            A card pays where only cards are taken, from your stablecoins, under an agent’s policy.
          </Empty>
        </Panel>
      )}
      {chosen !== undefined && (
        <>
          <div class="cardgrid">
            {lasting.map((card) => (
              <PayCard key={card.id} card={card} isChosen={card.id === chosen.id} />
            ))}
          </div>
          {over.length > 0 && <Over cards={over} chosenId={chosen.id} />}
          <CardView key={chosen.id} card={chosen} />
        </>
      )}
      {isAdding && <NewCard close={() => setAdding(false)} />}
    </>
  )
}

/** A card for one purchase that it has made, or never will. Agents issue many: they are rows, not cards. */
function isOver({ singleUse }: ListedCard): boolean {
  return singleUse !== undefined && singleUse.status !== 'open' && singleUse.status !== 'authorized'
}

function Over({
  cards: over,
  chosenId,
}: {
  readonly cards: readonly ListedCard[]
  readonly chosenId: string
}) {
  return (
    <details class="fold" open={over.some(({ id }) => id === chosenId)}>
      <summary class="linkbtn small">
        {over.length === 1 ? '1 ended card' : `${over.length} ended cards`} for one purchase
      </summary>
      <Panel>
        <ul class="rows">
          {over.map((card) => (
            <OverRow key={card.id} card={card} />
          ))}
        </ul>
      </Panel>
    </details>
  )
}

function OverRow({ card }: { readonly card: ListedCard }) {
  const agent = useAgent(card.agentId)
  const { singleUse } = card
  if (singleUse === undefined) return null
  return (
    <li>
      <Link class="item" href={`/cards/${card.id}`}>
        <IconGlyph name="card" />
        <span class="item__main">
          <span class="item__name">
            <span class="trim">
              <Untrusted>{describeMerchant(singleUse.merchant) ?? nameCard(card)}</Untrusted>
            </span>
            <span class="faint">•• {card.last4}</span>
          </span>
          <span class="item__sub wrap">
            <Untrusted>{[agent?.name ?? 'Yours', singleUse.task].filter(Boolean).join(' · ')}</Untrusted>
          </span>
        </span>
        <span class="item__end">
          <span class="num">{formatUsd(singleUse.amount)}</span>
          <span class="small faint">{singleUseState(singleUse.status)}</span>
        </span>
      </Link>
    </li>
  )
}

function nameCard(card: ListedCard): string {
  if (card.nickname === null && card.singleUse !== undefined) return 'One purchase'
  return card.nickname ?? `${card.type === 'virtual' ? 'Virtual' : 'Physical'} card`
}

function formatExpiry({ expMonth, expYear }: Pick<Card, 'expMonth' | 'expYear'>): string {
  return `${String(expMonth).padStart(2, '0')}/${String(expYear).slice(-2)}`
}

/** A card as a card. */
function PayCard({ card, isChosen }: { readonly card: ListedCard; readonly isChosen: boolean }) {
  const agent = useAgent(card.agentId)
  const look = card.status === 'active' ? [`paycard--${chooseHue(card.id)}`] : ['paycard--frozen']
  return (
    <Link
      class={['paycard', ...look].join(' ')}
      href={`/cards/${card.id}`}
      aria-current={isChosen ? 'true' : undefined}
    >
      <svg class="paycard__art" viewBox="0 0 320 202" preserveAspectRatio="xMaxYMid slice" aria-hidden="true">
        {[60, 100, 140, 180, 220, 260].map((radius) => (
          <circle key={radius} cx="300" cy="190" r={radius} />
        ))}
      </svg>
      <span class="paycard__top">
        <span class="paycard__name">
          <span class="trim">
            <Untrusted>{nameCard(card)}</Untrusted>
          </span>
          <span class="paycard__note">
            <Untrusted>{agent?.name ?? 'Yours'}</Untrusted>
          </span>
        </span>
        {card.status !== 'active' && (
          <span class="paycard__state">
            <Icon name={card.status === 'frozen' ? 'freeze' : 'close'} small />
            {card.status === 'frozen' ? 'Frozen' : 'Cancelled'}
          </span>
        )}
      </span>
      <span class="paycard__end">
        <span class="paycard__pan">
          <span class="hide">ends in </span>
          <span aria-hidden="true">•••• </span>
          {card.last4}
        </span>
        <span class="paycard__note num">{formatExpiry(card)}</span>
      </span>
    </Link>
  )
}

function useAgent(agentId: string | null) {
  const keys = loadedValue(useResource(agents))?.keys
  return agentId === null ? undefined : keys?.find((key) => key.agentId === agentId)
}

function CardView({ card }: { readonly card: ListedCard }) {
  if (card.singleUse !== undefined)
    return (
      <Columns
        main={
          <>
            <OnePurchase card={card} singleUse={card.singleUse} />
            <Purchases card={card} />
          </>
        }
        side={
          <>
            <CardNumber card={card} />
            {card.status !== 'canceled' && <Ending card={card} />}
          </>
        }
      />
    )
  return (
    <Columns
      main={
        <>
          <Budget card={card} />
          <Purchases card={card} />
        </>
      }
      side={
        <>
          <CardNumber card={card} />
          <Controls card={card} />
          <Limits card={card} />
          {card.status !== 'canceled' && <Ending card={card} />}
        </>
      }
    />
  )
}

/** What a card for one purchase may take, where, and what it was for. */
function OnePurchase({ card, singleUse }: { readonly card: ListedCard; readonly singleUse: SingleUse }) {
  const { amount, remaining, merchant, task, expiresAt, status } = singleUse
  const agent = useAgent(card.agentId)
  const isOpen = !isOver(card)
  const now = useNow(isOpen)
  return (
    <Panel
      title={
        <>
          <Untrusted>{nameCard(card)}</Untrusted> •• {card.last4}
        </>
      }
      more={<span class="small soft">For one purchase</span>}
    >
      <div class="panel__body stack">
        {isOpen && (
          <BudgetBurn
            used={subtractDecimals(amount, remaining)}
            left={remaining}
            span="on this card"
            isOff={card.status !== 'active'}
          />
        )}
        <dl class="facts facts--end">
          <dt>Kept for it</dt>
          <dd class="num">{formatUsd(amount)}</dd>
          <dt>Only at</dt>
          <dd>
            <Untrusted>{describeMerchant(merchant) ?? 'Any shop'}</Untrusted>
          </dd>
          <dt>Issued by</dt>
          <dd>
            <Untrusted>{agent?.name ?? 'You'}</Untrusted>
          </dd>
          {task !== null && (
            <>
              <dt>Task</dt>
              <dd>
                <Link href={`/activity?task=${encodeURIComponent(task)}`}>
                  <Untrusted>{task}</Untrusted>
                </Link>
              </dd>
            </>
          )}
          <dt>{isOpen ? 'Ends' : 'Ended'}</dt>
          <dd>{isOpen ? `${formatLeft(expiresAt, now)}, or with its purchase` : singleUseState(status)}</dd>
        </dl>
        <p class="small faint">
          The money was set aside when the card was issued. What its purchase does not take returns.
        </p>
      </div>
    </Panel>
  )
}

function Budget({ card }: { readonly card: ListedCard }) {
  const agent = useAgent(card.agentId)
  const isFrozen = card.status === 'frozen'
  const freeze = async (isOn: boolean) => {
    const call = () => bursar.cards.settings({ cardId: card.id, freeze: isOn })
    await (isOn ? call() : withProof(call))
    await cards.reload()
    if (isOn) toast(`Frozen. Card ${card.last4} declines from now on.`)
    else toast(`Card ${card.last4} pays again.`)
  }
  return (
    <Panel
      title={
        <>
          <Untrusted>{nameCard(card)}</Untrusted> •• {card.last4}
        </>
      }
      more={
        card.status === 'canceled' ? (
          <Status status="canceled" />
        ) : (
          <ActionButton
            size="sm"
            icon={isFrozen ? 'play' : 'freeze'}
            run={() => freeze(!isFrozen)}
            busy={isFrozen ? 'Unfreezing' : 'Freezing'}
          >
            {isFrozen ? 'Unfreeze' : 'Freeze'}
          </ActionButton>
        )
      }
    >
      <div class="panel__body stack">
        {agent === undefined ? (
          <p class="soft">
            It pays under its own limits. Bind it to an agent, and the agent’s policy counts too.
          </p>
        ) : (
          <div class="stack stack--tight">
            <span class="stat__name">
              <span>
                Its agent, <Untrusted>{agent.name}</Untrusted>
              </span>
            </span>
            {agent.usage.remaining === null ? (
              <p class="small">{formatUsd(agent.usage.used)} spent today, without a budget</p>
            ) : (
              <BudgetBurn
                used={agent.usage.used}
                left={agent.usage.remaining}
                span="today"
                isOff={agent.status !== 'active'}
              />
            )}
          </div>
        )}
        <p class="small faint">
          The card’s own limits and its agent’s policy both count. The tighter one decides.
        </p>
      </div>
    </Panel>
  )
}

function Purchases({ card }: { readonly card: Card }) {
  const source = purchasesOfCard(card.id)
  const state = useResource(source)
  return (
    <Panel title="Purchases" more={<PanelLink href="/activity?kind=card">All purchases</PanelLink>}>
      {state.status === 'loading' && <SkeletonRows rows={4} />}
      {state.status === 'failed' && (
        <Failed subject="The purchases" error={state.error} retry={source.reload} />
      )}
      {state.status === 'ready' &&
        (state.value.transactions.length === 0 ? (
          <Empty icon="card" title="No purchase yet">
            Purchases show here, and why one was declined.
          </Empty>
        ) : (
          <ul class="rows">
            {state.value.transactions.map((transaction) => (
              <Purchase key={transaction.id} transaction={transaction} />
            ))}
          </ul>
        ))}
    </Panel>
  )
}

function Purchase({ transaction }: { readonly transaction: CardTransaction }) {
  const { status, merchant, mcc, createdAt, reason, refunded } = transaction
  const isDeclined = status === 'declined'
  const isBack = compareDecimals(refunded, '0') > 0
  const amount =
    status === 'settled'
      ? transaction.cleared
      : status === 'pending'
        ? transaction.approved
        : transaction.amount
  const state = { voided: 'Voided', expired: 'Expired', pending: '', settled: 'Cleared', declined: '' }[
    status
  ]
  return (
    <li>
      <div class="item">
        <IconGlyph name={isDeclined ? 'close' : 'card'} kind={isDeclined ? 'bad' : undefined} />
        <span class="item__main">
          <span class="item__name">
            <span class="trim">
              <Untrusted>{merchant}</Untrusted>
            </span>
          </span>
          <span class="item__sub wrap">
            {formatWhen(createdAt)}
            {isDeclined
              ? ` · ${declineInWords(reason)}`
              : nameCategory(mcc) !== null && ` · ${nameCategory(mcc)}`}
            {isBack && ` · ${formatDecimal(refunded)} USD refunded`}
          </span>
        </span>
        <span class="item__end">
          <Amount
            amount={amount}
            asset="USD"
            direction="out"
            isVoid={!['pending', 'settled'].includes(status)}
          />
          {state === '' ? <Status status={status} /> : <span class="small faint">{state}</span>}
        </span>
      </div>
    </li>
  )
}

interface Revealed {
  readonly pan: string
  readonly cvc: string
}

const SHOWN_SECONDS = 60

/** The number is asked for after a second factor, kept for a minute in this component alone, and stored nowhere. */
function CardNumber({ card }: { readonly card: Card }) {
  const [revealed, setRevealed] = useState<Revealed | null>(null)
  const [left, setLeft] = useState(SHOWN_SECONDS)
  useEffect(() => {
    if (revealed === null) return
    const until = Date.now() + SHOWN_SECONDS * 1000
    const timer = setInterval(() => {
      const seconds = Math.ceil((until - Date.now()) / 1000)
      setLeft(seconds)
      if (seconds <= 0) setRevealed(null)
    }, 250)
    return () => clearInterval(timer)
  }, [revealed])
  const show = async () => {
    const answer = await withProof(() => bursar.cards.reveal({ id: card.id }))
    if (answer.embedUrl != null) {
      open(answer.embedUrl, '_blank', 'noopener')
      return
    }
    setLeft(SHOWN_SECONDS)
    setRevealed({ pan: answer.pan ?? '', cvc: answer.cvc ?? '' })
  }
  return (
    <Panel title="Number" more={deployment.isSandbox && <Chip kind="sandbox">Test card</Chip>}>
      <div class="panel__body stack">
        <dl class="facts">
          <dt>Number</dt>
          <dd class="mono">
            {revealed === null ? (
              <>
                <span class="hide">Hidden, ends in {card.last4}</span>
                <span aria-hidden="true">•••• •••• •••• {card.last4}</span>
              </>
            ) : (
              revealed.pan.replace(/(\d{4})(?=\d)/g, '$1 ')
            )}
          </dd>
          <dt>Expires</dt>
          <dd class="mono">{formatExpiry(card)}</dd>
          <dt>CVC</dt>
          <dd class="mono">
            {revealed === null ? (
              <>
                <span class="hide">Hidden</span>
                <span aria-hidden="true">•••</span>
              </>
            ) : (
              revealed.cvc
            )}
          </dd>
        </dl>
        {revealed === null ? (
          <>
            <ActionButton icon="eye" isFull run={show} disabled={card.status === 'canceled'}>
              Show the number
            </ActionButton>
            <p class="small faint">Shown for 60 seconds. Never logged.</p>
          </>
        ) : (
          <>
            <div class="row">
              <button class="btn grow" type="button" onClick={() => setRevealed(null)}>
                Hide
              </button>
              <CopyButton text={revealed.pan} what="the number" />
            </div>
            <p class="small faint num">Hidden again in {left} seconds.</p>
          </>
        )}
      </div>
    </Panel>
  )
}

const channelWords = [
  ['ecommerce', 'Online', 'Shops and subscriptions'],
  ['contactless', 'Contactless', 'In shops'],
  ['magstripe', 'Magnetic stripe', 'Old terminals, easily copied'],
  ['atm', 'Cash machines', 'Cash cannot be traced'],
] as const

function Controls({ card }: { readonly card: Card }) {
  const change = async (channel: (typeof channelWords)[number][0], isOn: boolean) => {
    const call = () => bursar.cards.settings({ cardId: card.id, channels: { [channel]: isOn } })
    await (isOn ? withProof(call) : call())
    await cards.reload()
  }
  return (
    <Panel title="Controls">
      <div class="panel__body">
        {channelWords.map(([channel, words, hint]) => (
          <Setting
            key={channel}
            label={words}
            hint={hint}
            isOn={card.channels[channel]}
            disabled={card.status === 'canceled'}
            change={(isOn) => change(channel, isOn)}
          />
        ))}
      </div>
    </Panel>
  )
}

function Limits({ card }: { readonly card: Card }) {
  const [isOpen, setOpen] = useState(false)
  const { limits, mcc, priority } = card
  const kindsOfShop = [
    ...(mcc.allow === null ? [] : [`Only ${mcc.allow.map((code) => nameCategory(code)).join(', ')}`]),
    ...(mcc.deny.length === 0 ? [] : [`Not ${mcc.deny.map((code) => nameCategory(code)).join(', ')}`]),
  ]
  return (
    <Panel
      title="Limits"
      more={
        card.status !== 'canceled' && (
          <button class="linkbtn" type="button" onClick={() => setOpen(true)}>
            Change
          </button>
        )
      }
    >
      <div class="panel__body">
        <dl class="facts facts--end">
          <dt>At a time</dt>
          <dd>{limits.perPurchase === null ? 'No limit' : formatUsd(limits.perPurchase)}</dd>
          <dt>A day</dt>
          <dd>{limits.daily === null ? 'No limit' : formatUsd(limits.daily)}</dd>
          <dt>Kinds of shop</dt>
          <dd>{kindsOfShop.length === 0 ? 'All' : kindsOfShop.join('. ')}</dd>
          <dt>Paid from</dt>
          <dd>{priority.join(', then ')}</dd>
        </dl>
      </div>
      {isOpen && <LimitsDialog card={card} close={() => setOpen(false)} />}
    </Panel>
  )
}

/** Empty text: no limit. */
function parseLimit(text: string): string | null {
  const trimmed = text.trim()
  return trimmed === '' ? null : trimmed
}

function LimitsDialog({ card, close }: { readonly card: Card; readonly close: () => void }) {
  const [perPurchase, setPerPurchase] = useState(card.limits.perPurchase ?? '')
  const [daily, setDaily] = useState(card.limits.daily ?? '')
  const save = async () => {
    const limits = { perPurchase: parseLimit(perPurchase), daily: parseLimit(daily) }
    await withProof(() => bursar.cards.update({ cardId: card.id, limits }))
    await cards.reload()
    close()
    toast(`The limits of card ${card.last4} are changed.`)
  }
  return (
    <Dialog title={`Limits of card ${card.last4}`} close={close}>
      <PurchaseLimit label="At a time" value={perPurchase} change={setPerPurchase} />
      <Field label="A day (UTC)" of="limits.daily">
        {(props) => (
          <MoneyInput value={daily} onInput={(event) => setDaily(event.currentTarget.value)} {...props} />
        )}
      </Field>
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={save} busy="Saving">
          Save
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

function Ending({ card }: { readonly card: ListedCard }) {
  const [isAsking, ask] = useState(false)
  const end = async () => {
    if (card.singleUse === undefined) await bursar.cards.update({ cardId: card.id, status: 'canceled' })
    else await bursar.cards.cancel({ id: card.id })
    await cards.reload()
    toast(`Card ${card.last4} is cancelled.`)
  }
  return (
    <Panel>
      <div class="panel__body stack stack--tight">
        <h2>End it for good</h2>
        <p class="small soft">Cancelling cannot be undone. Its purchases stay in the statement.</p>
        <div>
          <button class="btn btn--stopline btn--sm" type="button" onClick={() => ask(true)}>
            Cancel card {card.last4}
          </button>
        </div>
      </div>
      {isAsking && (
        <Dialog title={`Cancel card ${card.last4}?`} close={() => ask(false)}>
          <p>It declines from now on and for good. What was already approved still clears.</p>
          <DialogButtons close={() => ask(false)} leave="Keep it">
            <ActionButton
              kind="stop"
              busy="Cancelling"
              run={async () => {
                await end()
                ask(false)
              }}
            >
              Cancel it for good
            </ActionButton>
          </DialogButtons>
        </Dialog>
      )}
    </Panel>
  )
}

function NewCard({ close }: { readonly close: () => void }) {
  const keys = loadedValue(useResource(agents))?.keys.filter(({ status }) => status === 'active') ?? []
  const [nickname, setNickname] = useState('')
  const [agentId, setAgentId] = useState('')
  const [perPurchase, setPerPurchase] = useState('25.00')
  const issue = async () => {
    await withProof(() =>
      bursar.cards.issue({
        limits: { perPurchase: parseLimit(perPurchase) },
        ...(nickname.trim() === '' ? {} : { nickname: nickname.trim() }),
        ...(agentId === '' ? {} : { agentId }),
      }),
    )
    await cards.reload()
    close()
    toast('The card is ready to pay.')
  }
  return (
    <Dialog title="New card" close={close}>
      <Field label="Name" of="nickname">
        {(props) => (
          <input
            class="input"
            maxLength={64}
            placeholder="Errands"
            value={nickname}
            autofocus
            onInput={(event) => setNickname(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <Field label="Who pays with it" of="agentId" hint="The agent’s policy then counts for every purchase.">
        {(props) => (
          <AgentSelect
            agents={keys}
            other={['', 'Only you']}
            value={agentId}
            choose={setAgentId}
            field={props}
          />
        )}
      </Field>
      <PurchaseLimit label="At a time at most" value={perPurchase} change={setPerPurchase} />
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={issue} busy="Making it">
          Make the card
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

function PurchaseLimit({
  label,
  value,
  change,
}: {
  readonly label: string
  readonly value: string
  readonly change: (value: string) => void
}) {
  return (
    <Field label={label} of="limits.perPurchase" hint="Empty: no limit of the card’s own.">
      {(props) => (
        <MoneyInput value={value} onInput={(event) => change(event.currentTarget.value)} {...props} />
      )}
    </Field>
  )
}
