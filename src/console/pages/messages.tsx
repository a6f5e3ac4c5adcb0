/** What was sent to the owner, and the channels by which it was. */
import { useEffect, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import type { NotificationChannel, NotificationMessage } from '../../client/operations.ts'
import { ActionButton, Dialog, DialogButtons, Field, Segments } from '../components/controls.tsx'
import { Icon, type IconName } from '../components/icon.tsx'
import { Chip, IconGlyph } from '../components/marks.tsx'
import { Empty, Failed, SkeletonRows, toast } from '../components/messages.tsx'
import { Columns, PageHead, Panel } from '../components/panel.tsx'
import { Untrusted } from '../components/quote.tsx'
import { bursar, withProof } from '../data/gateway.ts'
import { channels, sentMessages } from '../data/messages.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { formatMoment, formatWhen } from '../words/time.ts'

/** While something waits to be sent it is read again. */
const WAITING_MS = 3_000

const names: Readonly<Record<string, string>> = {
  slack: 'Slack',
  telegram: 'Telegram',
  email: 'Mail',
  webpush: 'Browser',
}
const icons: Readonly<Record<string, IconName>> = {
  slack: 'send',
  telegram: 'send',
  email: 'bell',
  webpush: 'laptop',
}

const nameType = (type: string) => names[type] ?? type

export function MessagesPage() {
  const [isAdding, add] = useState(false)
  return (
    <>
      <PageHead
        title="Messages"
        actions={
          <button class="btn btn--primary" type="button" onClick={() => add(true)}>
            <Icon name="plus" small />
            Add a channel
          </button>
        }
      >
        Where you are told, and what was sent. Nothing is decided there: a message leads here.
      </PageHead>
      <Columns main={<Inbox />} side={<Channels />} />
      {isAdding && <NewChannel close={() => add(false)} />}
    </>
  )
}

function Inbox() {
  const state = useResource(sentMessages)
  const shown = loadedValue(state)?.messages ?? []
  const waits = shown.some(({ status }) => status === 'waiting')
  useEffect(() => {
    if (!waits) return
    const timer = setInterval(() => void sentMessages.reload(), WAITING_MS)
    return () => clearInterval(timer)
  }, [waits])
  return (
    <Panel title="What was sent">
      {state.status === 'loading' && <SkeletonRows rows={4} />}
      {state.status === 'failed' && (
        <Failed subject="The list of messages" error={state.error} retry={sentMessages.reload} />
      )}
      {state.status === 'ready' && shown.length === 0 && (
        <Empty icon="bell" title="Nothing was sent yet">
          Once you have a channel, it tells you when an agent asks, when a budget is nearly used up, and when
          something needs you.
        </Empty>
      )}
      {shown.length > 0 && (
        <ul class="rows">
          {shown.map((message) => (
            <Message key={message.id} message={message} />
          ))}
        </ul>
      )}
    </Panel>
  )
}

function Message({ message }: { readonly message: NotificationMessage }) {
  const { at, title, lines, path, channelType, status } = message
  return (
    <li class="item">
      <IconGlyph name="bell" />
      <span class="item__main">
        <span class="item__name">
          {path === null ? (
            <span class="trim">{title ?? 'Being written'}</span>
          ) : (
            <Link class="trim" href={path}>
              {title ?? 'Being written'}
            </Link>
          )}
          {status === 'waiting' && (
            <Chip kind="warn" icon="clock">
              Waits
            </Chip>
          )}
          {status === 'failed' && (
            <Chip kind="bad" icon="close">
              Not sent
            </Chip>
          )}
        </span>
        {lines !== null && (
          <span class="stack stack--tight small soft">
            {[...new Set(lines)].map((line) => (
              <span class="wrap" key={line}>
                <Untrusted>{line}</Untrusted>
              </span>
            ))}
          </span>
        )}
        <span class="item__sub">
          {nameType(channelType)} ·{' '}
          <time dateTime={at} title={formatMoment(at)}>
            {formatWhen(at)}
          </time>
        </span>
      </span>
    </li>
  )
}

function Channels() {
  const state = useResource(channels)
  const shown = loadedValue(state)?.channels ?? []
  return (
    <Panel title="Channels" foot="Mails about the security of your account are always sent.">
      {state.status === 'loading' && <SkeletonRows rows={2} />}
      {state.status === 'failed' && (
        <Failed subject="The list of channels" error={state.error} retry={channels.reload} />
      )}
      {state.status === 'ready' && shown.length === 0 && (
        <Empty icon="send" title="No channel yet">
          Be told in Slack, in Telegram or by mail at once.
        </Empty>
      )}
      {shown.length > 0 && (
        <ul class="rows">
          {shown.map((channel) => (
            <Channel key={channel.id} channel={channel} />
          ))}
        </ul>
      )}
    </Panel>
  )
}

const problems: Readonly<Record<string, string>> = {
  unreachable: 'It does not answer.',
  url_not_allowed: 'Its address is not on the public internet.',
  no_service: 'Slack has removed this webhook.',
  http_401: 'The token is not accepted any more.',
  http_403: 'It is not allowed to write there.',
  http_404: 'It is not there any more.',
  http_429: 'It asks for a pause.',
  mail_not_sent: 'The mail could not be sent.',
}

function Channel({ channel }: { readonly channel: NotificationChannel }) {
  const { id, type, name, label, status, failingSince, problem, lastSentAt } = channel
  const remove = async () => {
    await withProof(() => bursar.notifications.channels.remove({ id }))
    await Promise.all([channels.reload(), sentMessages.reload()])
    toast('That channel gets no more messages.')
  }
  return (
    <li class="item">
      <IconGlyph name={icons[type] ?? 'bell'} />
      <span class="item__main">
        <span class="item__name">
          <span class="trim">{name === null ? nameType(type) : <bdi>{name}</bdi>}</span>
          {status === 'failing' && (
            <Chip kind="bad" icon="warning">
              Failing
            </Chip>
          )}
        </span>
        <span class="item__sub">
          {name === null ? '' : `${nameType(type)} · `}
          <Untrusted>{label}</Untrusted>
        </span>
        {problem !== null && (
          <span class="small wrap">
            {problems[problem] ?? `It answered ${problem.replaceAll('_', ' ')}.`}
            {failingSince === null ? '' : ` Since ${formatWhen(failingSince)}; it is tried again.`}
          </span>
        )}
        {problem === null && lastSentAt !== null && (
          <span class="item__sub">Last message {formatWhen(lastSentAt)}</span>
        )}
      </span>
      <ActionButton
        size="sm"
        run={remove}
        busy="Removing"
        label={`Remove ${name ?? nameType(type)}, ${label}`}
      >
        Remove
      </ActionButton>
    </li>
  )
}

type Kind = 'slack' | 'telegram' | 'email'

const kinds = [
  ['slack', 'Slack'],
  ['telegram', 'Telegram'],
  ['email', 'Mail'],
] as const

function NewChannel({ close }: { readonly close: () => void }) {
  const [kind, choose] = useState<Kind>('slack')
  const [name, setName] = useState('')
  const [webhookUrl, setWebhookUrl] = useState('')
  const [botToken, setBotToken] = useState('')
  const [chatId, setChatId] = useState('')
  const [address, setAddress] = useState('')
  const given = {
    slack: { webhookUrl: webhookUrl.trim() },
    telegram: { botToken: botToken.trim(), chatId: chatId.trim() },
    email: { address: address.trim() },
  }[kind]
  const create = async () => {
    const named = name.trim() === '' ? {} : { name: name.trim() }
    await withProof(() => bursar.notifications.channels.create({ type: kind, ...given, ...named }))
    await channels.reload()
    close()
    toast('The channel is added. It is told what happens from now on.')
  }
  return (
    <Dialog title="Add a channel" close={close}>
      <Segments label="Kind of channel" options={kinds} value={kind} choose={choose} />
      {kind === 'slack' && (
        <TextField
          label="Webhook"
          of="webhookUrl"
          hint="From Slack’s page of your app, under Incoming Webhooks. It is kept sealed and not shown again."
          value={webhookUrl}
          set={setWebhookUrl}
          isSecret
        />
      )}
      {kind === 'telegram' && (
        <>
          <TextField
            label="Token of your bot"
            of="botToken"
            hint="From BotFather. It is kept sealed and not shown again."
            value={botToken}
            set={setBotToken}
            isSecret
          />
          <TextField
            label="Chat"
            of="chatId"
            hint="Its number, or @name of a channel. Write to your bot there first."
            value={chatId}
            set={setChatId}
          />
        </>
      )}
      {kind === 'email' && (
        <TextField
          label="Address"
          of="address"
          hint="One that you sign in with. It gets requests for approval at once."
          value={address}
          set={setAddress}
        />
      )}
      <TextField label="Name" of="name" hint="For yourself. May be empty." value={name} set={setName} />
      <DialogButtons close={close}>
        <ActionButton
          kind="primary"
          run={create}
          busy="Adding"
          disabled={Object.values(given).some((value) => value === '')}
        >
          Add the channel
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

function TextField({
  label,
  of,
  hint,
  value,
  set,
  isSecret = false,
}: {
  readonly label: string
  readonly of: string
  readonly hint: string
  readonly value: string
  readonly set: (value: string) => void
  readonly isSecret?: boolean
}) {
  return (
    <Field label={label} of={of} hint={hint}>
      {(props) => (
        <input
          class="input"
          {...(isSecret ? ({ type: 'password' } as const) : ({ type: 'text' } as const))}
          autoComplete="off"
          value={value}
          onInput={(event) => set(event.currentTarget.value)}
          {...props}
        />
      )}
    </Field>
  )
}
