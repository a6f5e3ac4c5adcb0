/** Keys, webhooks, events and commands for programs. */
import { useEffect, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { DeveloperKey, WebhookDelivery, WebhookEndpoint } from '../../client/operations.ts'
import {
  ActionButton,
  Copy,
  CopyButton,
  Dialog,
  DialogButtons,
  Field,
  MoneyInput,
} from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { Chip, IconGlyph, Status } from '../components/marks.tsx'
import { Empty, Failed, SkeletonRows, toast } from '../components/messages.tsx'
import { Columns, PageHead, Panel } from '../components/panel.tsx'
import { Untrusted } from '../components/quote.tsx'
import { deployment } from '../data/account.ts'
import { addEvent, apiKeys, deliveriesByEndpoint, recentEvents, webhooks } from '../data/developers.ts'
import { bursar, withProof } from '../data/gateway.ts'
import { type Resource, useResource } from '../data/resource.ts'
import { connection, onEvent } from '../data/stream.ts'
import { count } from '../words/names.ts'
import { shortText } from '../words/plain-text.ts'
import { formatMoment, formatWhen } from '../words/time.ts'

type Sheet = 'key' | 'webhook' | null

export function DevelopersPage() {
  const [sheet, open] = useState<Sheet>(null)
  const close = () => open(null)
  return (
    <>
      <PageHead
        title="Developers"
        actions={
          <>
            <a class="btn" href="/docs">
              <Icon name="external" small />
              API reference
            </a>
            <button class="btn btn--primary" type="button" onClick={() => open('key')}>
              <Icon name="plus" small />
              New key
            </button>
          </>
        }
      >
        Everything this console does, it does through the same API.
      </PageHead>
      <ApiKeys />
      <Columns
        main={<Webhooks add={() => open('webhook')} />}
        side={
          <>
            <Events />
            <Commands />
          </>
        }
      />
      {sheet === 'key' && <NewKey close={close} />}
      {sheet === 'webhook' && <NewWebhook close={close} />}
    </>
  )
}

/** Rows of a list that is loading or failed. @returns null when it is there */
function renderMissing<Value>(
  state: ReturnType<typeof useResource<Value>>,
  source: Resource<Value>,
  subject: string,
) {
  if (state.status === 'loading') return <SkeletonRows rows={2} />
  if (state.status === 'failed') return <Failed subject={subject} error={state.error} retry={source.reload} />
  return null
}

function ApiKeys() {
  const state = useResource(apiKeys)
  const missing = renderMissing(state, apiKeys, 'The list of keys')
  const keys = state.status === 'ready' ? state.value.keys : []
  return (
    <Panel title="API keys" foot="A key that can spend has rules of its own, under Agents.">
      {missing}
      {missing === null && keys.length === 0 && (
        <Empty icon="key" title="No key yet">
          A program signs its calls with a key. It may do what its scopes say, and spend what its rules allow.
        </Empty>
      )}
      <ul class="rows">
        {keys.map((key) => (
          <KeyRow key={key.id} apiKey={key} />
        ))}
      </ul>
    </Panel>
  )
}

function KeyRow({ apiKey }: { readonly apiKey: DeveloperKey }) {
  const { id, status, scopes, createdAt, expiresAt, policy } = apiKey
  const name = shortText(apiKey.name)
  const [isRevoking, revoke] = useState(false)
  const become = async (wish: 'active' | 'paused') => {
    await withProof(() => bursar.developer.keys.update({ id, status: wish }))
    await apiKeys.reload()
    toast(wish === 'paused' ? 'The key is stopped.' : 'The key works again.')
  }
  const isLive = status !== 'revoked'
  return (
    <li>
      <div class="item">
        <IconGlyph name="key" />
        <span class="item__main">
          <span class="item__name">
            <Link class="trim" href={`/agents/${id}`}>
              <Untrusted>{name}</Untrusted>
            </Link>
            {status !== 'active' && <Status status={status} />}
          </span>
          <span class="item__sub">
            {policy === null ? 'Cannot spend' : 'Spends within its rules'} · {count(scopes.length, 'scope')} ·
            made {formatWhen(createdAt)}
            {expiresAt !== null && ` · ends ${formatWhen(expiresAt)}`}
          </span>
        </span>
        {isLive && (
          <span class="row">
            <ActionButton
              size="sm"
              run={() => become(status === 'active' ? 'paused' : 'active')}
              label={`${status === 'active' ? 'Stop' : 'Start'} the key ${name}`}
            >
              {status === 'active' ? 'Stop' : 'Start'}
            </ActionButton>
            <button
              class="btn btn--sm btn--quiet"
              type="button"
              aria-label={`Revoke the key ${name}`}
              onClick={() => revoke(true)}
            >
              Revoke
            </button>
          </span>
        )}
      </div>
      {isRevoking && <RevokeKey id={id} name={name} close={() => revoke(false)} />}
    </li>
  )
}

function RevokeKey({
  id,
  name,
  close,
}: {
  readonly id: string
  readonly name: string
  readonly close: () => void
}) {
  const run = async () => {
    await withProof(() => bursar.developer.keys.revoke({ id }))
    close()
    await apiKeys.reload()
    toast('The key is revoked.')
  }
  return (
    <Dialog title="Revoke this key for good?" close={close}>
      <p>
        <Untrusted>{name}</Untrusted> is refused from this second on, and cannot be started again. What it has
        already sent stays sent.
      </p>
      <DialogButtons close={close}>
        <ActionButton kind="stop" run={run} busy="Revoking">
          Revoke for good
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

type Scope = Parameters<typeof bursar.developer.keys.create>[0]['scopes'][number]

const readable: readonly (readonly [Scope, string])[] = [
  ['wallets:read', 'See the wallet and its transfers'],
  ['banking:read', 'See bank accounts'],
  ['cards:read', 'See cards'],
  ['investing:read', 'See investments'],
  ['swaps:quote', 'Ask for quotes of swaps'],
  ['requests:read', 'See its own requests for money'],
  ['events:read', 'Follow its own events'],
]
const changeable: readonly (readonly [Scope, string])[] = [
  ['banking:write', 'Open bank accounts'],
  ['compliance:write', 'Submit Travel Rule data'],
  ['requests:create', 'Ask others for money'],
]
/** Each with the categories that the rules must name. */
const spendable: readonly (readonly [
  Scope,
  string,
  readonly ('transfer' | 'gasless' | 'card' | 'invest' | 'swap' | 'x402')[],
])[] = [
  ['wallets:transfer', 'Send stablecoins', ['transfer', 'gasless']],
  ['cards:write', 'Make cards and pay by card', ['card']],
  ['cards:pay', 'Make cards for one purchase', ['card']],
  ['investing:trade', 'Place orders', ['invest']],
  ['swaps:execute', 'Swap stablecoins', ['swap']],
  ['purchases:pay', 'Buy web resources', ['x402']],
  ['fx:pay', 'Buy FX quotes', ['x402']],
]

function NewKey({ close }: { readonly close: () => void }) {
  const [name, setName] = useState('')
  const [chosen, choose] = useState<ReadonlySet<Scope>>(new Set(readable.map(([scope]) => scope)))
  const [perPayment, setPerPayment] = useState('5.00')
  const [daily, setDaily] = useState('20.00')
  const [above, setAbove] = useState('2.00')
  const [secret, setSecret] = useState<string | null>(null)
  const allow = [
    ...new Set(spendable.flatMap(([scope, , categories]) => (chosen.has(scope) ? categories : []))),
  ]
  const create = async () => {
    const rules = {
      perTransaction: { max: perPayment.trim() },
      dailyBudget: { max: daily.trim() },
      categories: { allow },
      ...(above.trim() === '' ? {} : { approval: { above: above.trim(), ttlSec: 3600 } }),
    }
    const made = await withProof(() =>
      bursar.developer.keys.create({
        name: name.trim(),
        scopes: [...chosen],
        ...(allow.length > 0 ? { policy: rules } : {}),
      }),
    )
    setSecret(made.key)
    await apiKeys.reload()
  }
  if (secret !== null) return <Secret title="Your new key" secret={secret} close={close} />
  const group = (title: string, list: readonly (readonly [Scope, string, ...unknown[]])[]) => (
    <fieldset class="ticks">
      <legend class="small strong">{title}</legend>
      {list.map(([scope, words]) => (
        <label class="check small" key={scope}>
          <input
            type="checkbox"
            checked={chosen.has(scope)}
            onChange={(event) => {
              const next = new Set(chosen)
              if (event.currentTarget.checked) next.add(scope)
              else next.delete(scope)
              choose(next)
            }}
          />
          {words}
        </label>
      ))}
    </fieldset>
  )
  return (
    <Dialog title="New key" close={close}>
      <Field label="Name" of="name" hint="What will use it, such as Nightly report.">
        {(props) => (
          <input
            class="input"
            maxLength={80}
            value={name}
            autofocus
            onInput={(event) => setName(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      {group('It may see', readable)}
      {group('It may change', changeable)}
      {group('It may spend', spendable)}
      {allow.length > 0 && (
        <div class="formgrid">
          <Field label="At most a payment" of="policy.perTransaction.max">
            {(props) => (
              <MoneyInput
                value={perPayment}
                onInput={(event) => setPerPayment(event.currentTarget.value)}
                {...props}
              />
            )}
          </Field>
          <Field label="At most a day (UTC)" of="policy.dailyBudget.max">
            {(props) => (
              <MoneyInput value={daily} onInput={(event) => setDaily(event.currentTarget.value)} {...props} />
            )}
          </Field>
          <Field label="Asks you above" hint="Empty: never.">
            {(props) => (
              <MoneyInput value={above} onInput={(event) => setAbove(event.currentTarget.value)} {...props} />
            )}
          </Field>
        </div>
      )}
      <DialogButtons close={close}>
        <ActionButton
          kind="primary"
          run={create}
          busy="Making"
          disabled={name.trim() === '' || chosen.size === 0}
        >
          Make the key
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

/** A secret that the gateway shows once. */
function Secret({
  title,
  secret,
  close,
}: {
  readonly title: string
  readonly secret: string
  readonly close: () => void
}) {
  return (
    <Dialog title={title} close={close}>
      <p>It is shown this once. Keep it where your other secrets are, never in code.</p>
      <Copy text={secret} what="the secret" />
      <div class="dialog__buttons">
        <button class="btn btn--primary" type="button" onClick={close}>
          I have kept it
        </button>
      </div>
    </Dialog>
  )
}

function Webhooks({ add }: { readonly add: () => void }) {
  const state = useResource(webhooks)
  const missing = renderMissing(state, webhooks, 'The list of webhooks')
  const shown = state.status === 'ready' ? state.value.endpoints : []
  return (
    <>
      <Panel
        title="Webhooks"
        more={
          <button class="btn btn--sm" type="button" onClick={add}>
            <Icon name="plus" small />
            Add a webhook
          </button>
        }
      >
        {missing}
        {missing === null && shown.length === 0 && (
          <Empty icon="code" title="No webhook yet">
            Bursar calls your server as things happen, signed with a secret of its own.
          </Empty>
        )}
        {shown.length > 0 && (
          <p class="panel__body small soft">
            {count(shown.length, 'address is', 'addresses are')} called as things happen. Each call is signed.
          </p>
        )}
      </Panel>
      {shown.map((endpoint) => (
        <Webhook key={endpoint.id} endpoint={endpoint} />
      ))}
    </>
  )
}

function Webhook({ endpoint }: { readonly endpoint: WebhookEndpoint }) {
  const { id, url, types, description, status, failingSince } = endpoint
  const deliveries = deliveriesByEndpoint(id)
  const state = useResource(deliveries)
  const [secret, setSecret] = useState<string | null>(null)
  const [isRemoving, remove] = useState(false)
  const isPending = state.status === 'ready' && state.value.deliveries.some((one) => one.status === 'pending')
  const [awaitedTest, awaitTest] = useState<object | null>(null)
  useEffect(() => {
    if (awaitedTest === null) return
    const timer = setTimeout(() => awaitTest(null), EXPECTED_MS)
    return () => clearTimeout(timer)
  }, [awaitedTest])
  useRepeated(deliveries.reload, (isPending || awaitedTest !== null) && !isRemoving)
  const test = async () => {
    await bursar.webhookEndpoints.test({ id })
    awaitTest({})
    toast('A test event is on its way.')
    await deliveries.reload()
  }
  const rotate = async () => {
    const { secret: next } = await withProof(() => bursar.webhookEndpoints.rotate({ id }))
    setSecret(next)
  }
  const become = async (wish: 'active' | 'disabled') => {
    await withProof(() => bursar.webhookEndpoints.update({ id, status: wish }))
    await webhooks.reload()
    toast(wish === 'active' ? 'Deliveries go on.' : 'Deliveries are paused.')
  }
  const missing = renderMissing(state, deliveries, 'The deliveries')
  const shown = state.status === 'ready' ? state.value.deliveries : []
  return (
    <Panel
      title={<Untrusted>{description === null ? extractHost(url) : shortText(description)}</Untrusted>}
      more={
        <span class="row">
          {status === 'active' ? <Status status="active" /> : <Chip kind="bad">Paused</Chip>}
          {status === 'active' && (
            <ActionButton size="sm" run={test} busy="Sending">
              Send a test
            </ActionButton>
          )}
        </span>
      }
      foot={
        <span class="row row--wrap">
          <ActionButton size="sm" run={() => become(status === 'active' ? 'disabled' : 'active')}>
            {status === 'active' ? 'Pause' : 'Go on'}
          </ActionButton>
          <ActionButton size="sm" run={rotate} busy="Replacing">
            New secret
          </ActionButton>
          <button class="btn btn--sm btn--quiet" type="button" onClick={() => remove(true)}>
            Delete
          </button>
        </span>
      }
    >
      <div class="panel__body stack">
        <Copy text={url} what="the address" />
        <div class="row row--wrap small">
          {types.length === 0 ? (
            <Chip kind="plain">Every event</Chip>
          ) : (
            types.map((type) => (
              <Chip kind="plain" key={type}>
                {type}
              </Chip>
            ))
          )}
          {failingSince !== null && <Chip kind="warn">Failing since {formatWhen(failingSince)}</Chip>}
        </div>
      </div>
      {missing}
      {missing === null && shown.length === 0 && (
        <p class="panel__body small soft">Nothing was delivered yet. Send a test to try it.</p>
      )}
      <ul class="rows">
        {shown.map((delivery) => (
          <Delivery key={delivery.id} endpointId={id} delivery={delivery} />
        ))}
      </ul>
      {secret !== null && <Secret title="The new secret" secret={secret} close={() => setSecret(null)} />}
      {isRemoving && <RemoveWebhook id={id} url={url} close={() => remove(false)} />}
    </Panel>
  )
}

const POLL_MS = 1_500
/** A test becomes a delivery within this time. */
const EXPECTED_MS = 15_000

/** Deliveries have no events of their own: those that wait are read again until they end. */
function useRepeated(run: () => Promise<void>, isNeeded: boolean): void {
  useEffect(() => {
    if (!isNeeded) return
    const timer = setInterval(() => void run(), POLL_MS)
    return () => clearInterval(timer)
  }, [run, isNeeded])
}

const faults: Readonly<Record<string, string>> = {
  'refused-url': 'the address is not allowed',
  unreachable: 'not reached',
  timeout: 'timed out',
  protocol: 'no valid answer',
}

function Delivery({
  endpointId,
  delivery,
}: {
  readonly endpointId: string
  readonly delivery: WebhookDelivery
}) {
  const { id, type, status, attempts, nextAttemptAt } = delivery
  const last = attempts.at(-1)
  const retry = async () => {
    await bursar.webhookEndpoints.deliveries.retry({ id: endpointId, deliveryId: id })
    await deliveriesByEndpoint(endpointId).reload()
    toast('It is sent again.')
  }
  const outcome = (attempt: WebhookDelivery['attempts'][number]) =>
    `${attempt.httpStatus ?? faults[attempt.error ?? ''] ?? 'failed'} · ${attempt.ms} ms`
  return (
    <li>
      <details class="decision">
        <summary class="item item--two">
          <span class="item__main">
            <span class="item__name">
              <span class="trim mono small">{type}</span>
            </span>
            <span class="item__sub num">
              {last === undefined ? 'Not tried yet' : `${outcome(last)} · ${formatWhen(last.at)}`}
              {nextAttemptAt !== null && attempts.length > 0 && ` · again ${formatWhen(nextAttemptAt)}`}
            </span>
          </span>
          {status === 'pending' && attempts.length > 0 ? (
            <Chip kind="warn" icon="retry">
              Retrying
            </Chip>
          ) : (
            <Status status={status} />
          )}
        </summary>
        <div class="decision__open stack">
          <ol class="attempts small">
            {attempts.map((attempt) => (
              <li class="row row--wide" key={attempt.at}>
                <span class="faint num">{formatMoment(attempt.at)}</span>
                <span class="num">{outcome(attempt)}</span>
              </li>
            ))}
          </ol>
          <div class="row row--wrap">
            <code class="mono small faint wrap">{delivery.eventId}</code>
            <CopyButton text={delivery.eventId} what="the id of the event" />
            <ActionButton size="sm" icon="retry" run={retry} busy="Sending">
              Send it again
            </ActionButton>
          </div>
        </div>
      </details>
    </li>
  )
}

function extractHost(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url
}

function RemoveWebhook({
  id,
  url,
  close,
}: {
  readonly id: string
  readonly url: string
  readonly close: () => void
}) {
  const run = async () => {
    await withProof(() => bursar.webhookEndpoints.remove({ id }))
    close()
    await webhooks.reload()
    toast('The webhook is deleted.')
  }
  return (
    <Dialog title="Delete this webhook?" close={close}>
      <p class="wrap">
        {url} is called no more, and its deliveries are forgotten. Events stay: a program can still read them.
      </p>
      <DialogButtons close={close}>
        <ActionButton kind="stop" run={run} busy="Deleting">
          Delete
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

/** Types that the gateway knows, by what they are about. */
const topics = [
  ['Transfers', ['transfer.submitted', 'transfer.confirmed', 'transfer.failed']],
  ['Swaps', ['swap.submitted', 'swap.confirmed', 'swap.failed']],
  ['Deposits', ['deposit.credited', 'deposit.reversed']],
  ['Approvals', ['approval.requested', 'approval.approved', 'approval.rejected', 'approval.expired']],
  ['Denials', ['decision.denied']],
  ['Cards', ['card.authorized', 'card.declined', 'card.cleared', 'card.reversed', 'card.refunded']],
  ['Purchases', ['purchase.delivered', 'purchase.undelivered', 'purchase.failed']],
  ['Channels', ['channel.opened', 'channel.closed']],
  ['Orders', ['order.accepted', 'order.filled', 'order.canceled', 'order.expired']],
] as const

function NewWebhook({ close }: { readonly close: () => void }) {
  const [url, setUrl] = useState('')
  const [description, setDescription] = useState('')
  const [chosen, choose] = useState<ReadonlySet<string>>(new Set())
  const [secret, setSecret] = useState<string | null>(null)
  const create = async () => {
    const types = topics.flatMap(([topic, list]) => (chosen.has(topic) ? list : []))
    const made = await withProof(() =>
      bursar.webhookEndpoints.create({
        url: url.trim(),
        types: [...types],
        description: description.trim() === '' ? null : description.trim(),
      }),
    )
    await webhooks.reload()
    if (made.secret === null) close()
    else setSecret(made.secret)
  }
  if (secret !== null) return <Secret title="The webhook’s secret" secret={secret} close={close} />
  return (
    <Dialog title="Add a webhook" close={close}>
      <Field
        label="Address"
        of="url"
        hint={
          deployment.isSandbox
            ? 'https, or an address of this machine while you try it.'
            : 'https, on the public internet.'
        }
      >
        {(props) => (
          <input
            class="input"
            type="url"
            placeholder="https://hooks.example.com/bursar"
            autofocus
            value={url}
            onInput={(event) => setUrl(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <Field label="Name" of="description" hint="For yourself. May be empty.">
        {(props) => (
          <input
            class="input"
            maxLength={200}
            value={description}
            onInput={(event) => setDescription(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <fieldset class="ticks">
        <legend class="small strong">Events. None ticked: all.</legend>
        {topics.map(([topic]) => (
          <label class="check small" key={topic}>
            <input
              type="checkbox"
              checked={chosen.has(topic)}
              onChange={(event) => {
                const next = new Set(chosen)
                if (event.currentTarget.checked) next.add(topic)
                else next.delete(topic)
                choose(next)
              }}
            />
            {topic}
          </label>
        ))}
      </fieldset>
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={create} busy="Adding" disabled={url.trim() === ''}>
          Add the webhook
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

function Events() {
  const state = useResource(recentEvents)
  useEffect(
    () =>
      onEvent((event) => {
        if (event === null) void recentEvents.reload()
        else addEvent(event)
      }),
    [],
  )
  const missing = renderMissing(state, recentEvents, 'The list of events')
  const shown = state.status === 'ready' ? state.value : []
  const isLive = connection.value.status === 'live'
  return (
    <Panel
      title="Events"
      more={<span class={isLive ? 'live' : 'live live--off'}>{isLive ? 'Live' : 'Interrupted'}</span>}
    >
      {missing}
      {missing === null && shown.length === 0 && (
        <p class="panel__body small soft">Nothing yet. What happens from now on shows here.</p>
      )}
      <ul class="rows events">
        {shown.map(({ id, type, createdAt }) => (
          <li class="item item--two" key={id}>
            <span class="mono small trim">{type}</span>
            <time class="small faint num" dateTime={createdAt} title={formatMoment(createdAt)}>
              {formatWhen(createdAt)}
            </time>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function Commands() {
  const { origin } = deployment
  const commands = [
    ['Sign your terminal in', `npx bursar login --url ${origin}`],
    ['Hear events on this machine', `npx bursar listen --url ${origin} --forward-to http://localhost:3000`],
    ['Make one happen', `npx bursar trigger approval.requested --url ${origin}`],
    ['Address for MCP clients', `${origin}/mcp`],
    ['OpenAPI document', `${origin}/api/openapi.json`],
  ] as const
  return (
    <Panel title="From your machine">
      <div class="panel__body stack">
        {commands.map(([words, text]) => (
          <div class="stack stack--tight" key={words}>
            <span class="small soft">{words}</span>
            <Copy text={text} what={words} />
          </div>
        ))}
      </div>
    </Panel>
  )
}
