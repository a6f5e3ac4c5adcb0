/** Passkeys, sessions, second factor, signers, allowances and the journal. */

import { useEffect, useState } from 'preact/hooks'
import type { Allowance, Passkey } from '../../client/operations.ts'
import { AgentSelect } from '../components/agent-select.tsx'
import { BudgetBurn } from '../components/burn.tsx'
import { AuthenticatorCode, CodeField, isCode } from '../components/code-field.tsx'
import {
  ActionButton,
  Copy,
  Dialog,
  DialogButtons,
  Field,
  MoneyInput,
  Setting,
} from '../components/controls.tsx'
import { Icon } from '../components/icon.tsx'
import { Chip, IconGlyph } from '../components/marks.tsx'
import { Failed, SkeletonRows, toast, toastFailure } from '../components/messages.tsx'
import { Columns, PageHead, Panel } from '../components/panel.tsx'
import { Untrusted } from '../components/quote.tsx'
import { account, deployment, session, signOut } from '../data/account.ts'
import { bursar, describeError, isProblem, signInAgain, withProof } from '../data/gateway.ts'
import { agents } from '../data/money.ts'
import { addPasskey, signWithPasskey } from '../data/passkeys.ts'
import {
  ownSubscriptionId,
  type PushState,
  readPushState,
  switchPushOff,
  switchPushOn,
} from '../data/push.ts'
import { loadedValue, type Resource, useResource } from '../data/resource.ts'
import {
  allowances,
  journal,
  mailSettings,
  passkeys,
  pushBrowsers,
  secondFactor,
  sessions,
  signers,
} from '../data/security.ts'
import { actionInWords } from '../words/journal.ts'
import { subtractDecimals } from '../words/money.ts'
import { shortAddress } from '../words/names.ts'
import { formatDay, formatWhen } from '../words/time.ts'

export function SecurityPage() {
  const [isLocking, lock] = useState(false)
  return (
    <>
      <PageHead
        title="Security"
        actions={
          <>
            <ActionButton run={signOut}>Sign out</ActionButton>
            <button class="btn btn--stopline" type="button" onClick={() => lock(true)}>
              <Icon name="lock" small />
              Lock everything
            </button>
          </>
        }
      >
        Who can get in, and who can sign for money.
      </PageHead>
      <Columns
        main={
          <>
            <Passkeys />
            <Sessions />
            <Journal />
          </>
        }
        side={
          <>
            <Name />
            <SecondFactor />
            <Messages />
            <Allowances />
            <Signers />
          </>
        }
      />
      {isLocking && <LockDialog close={() => lock(false)} />}
    </>
  )
}

/** The name by which the person is shown. */
function Name() {
  const shown = account.value?.displayName
  const [isOpen, open] = useState(false)
  return (
    <Panel title="Your name">
      <div class="panel__body">
        <div class="row">
          <span class="grow trim">
            {shown === undefined ? <span class="bone bone--w2" /> : <bdi>{shown}</bdi>}
          </span>
          <button class="btn btn--sm" type="button" disabled={shown === undefined} onClick={() => open(true)}>
            <Icon name="edit" small />
            Change
          </button>
        </div>
      </div>
      {isOpen && <NameDialog before={shown ?? ''} close={() => open(false)} />}
    </Panel>
  )
}

const MAX_NAME = 80

function NameDialog({ before, close }: { readonly before: string; readonly close: () => void }) {
  const [name, setName] = useState(before)
  const isNew = name.trim() !== '' && name.trim() !== before
  const save = async () => {
    await bursar.auth.profile({ displayName: name.trim() })
    await session.reload()
    close()
    toast('Your name is changed.')
  }
  return (
    <Dialog title="Change your name" close={close}>
      <p>It is shown here and on what you approve. Cards keep the name that they were made with.</p>
      <Field label="Name" of="displayName">
        {(props) => (
          <input
            class="input"
            maxLength={MAX_NAME}
            autoComplete="name"
            autofocus
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={save} busy="Saving" disabled={!isNew}>
          Save
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

/** Rows of a list that is loading or failed. @returns null when it is there */
function useMissing<Value>(source: Resource<Value>, subject: string) {
  const state = useResource(source)
  if (state.status === 'loading') return <SkeletonRows rows={2} />
  if (state.status === 'failed') return <Failed subject={subject} error={state.error} retry={source.reload} />
  return null
}

function Passkeys() {
  const missing = useMissing(passkeys, 'The list of passkeys')
  const shown = loadedValue(passkeys.state.value)?.passkeys ?? []
  const add = async () => {
    const isGuest = account.value?.guest === true
    await withProof(() => addPasskey())
    await Promise.all([passkeys.reload(), session.reload(), signers.reload()])
    toast(isGuest ? 'The account is yours now: it is kept beyond this browser.' : 'The passkey is added.')
  }
  return (
    <Panel
      title="Passkeys"
      more={
        <ActionButton size="sm" icon="plus" run={add} busy="Adding">
          Add a passkey
        </ActionButton>
      }
      foot="The last way in cannot be removed, and neither can the passkey that owns the wallet."
    >
      {missing}
      {missing === null &&
        (shown.length === 0 ? (
          <p class="panel__body soft">
            {account.value?.guest === true
              ? 'None yet. This guest account lives in this browser alone; a passkey keeps it.'
              : 'None yet. A passkey signs you in and signs for your money, without a password.'}
          </p>
        ) : (
          <ul class="rows">
            {shown.map((passkey) => (
              <PasskeyRow key={passkey.id} passkey={passkey} />
            ))}
          </ul>
        ))}
    </Panel>
  )
}

function PasskeyRow({ passkey }: { readonly passkey: Passkey }) {
  const { id, createdAt, lastUsedAt, deviceType } = passkey
  const owns = loadedValue(useResource(signers))?.signers.some((signer) => signer.id === id) === true
  const name = deviceType === 'multiDevice' ? 'Synced passkey' : 'Passkey of one device'
  const remove = async () => {
    await withProof(() => bursar.security.passkeys.remove({ id }))
    await passkeys.reload()
    toast('The passkey is removed.')
  }
  return (
    <li>
      <div class="item">
        <IconGlyph name={deviceType === 'multiDevice' ? 'phone' : 'laptop'} />
        <span class="item__main">
          <span class="item__name">
            <span class="trim">{name}</span>
            {owns && <Chip kind="info">Signs for the wallet</Chip>}
          </span>
          <span class="item__sub">
            Added {formatDay(createdAt)} ·{' '}
            {lastUsedAt === null ? 'never used' : `used ${formatWhen(lastUsedAt)}`}
          </span>
        </span>
        <ActionButton
          size="sm"
          run={remove}
          busy="Removing"
          label={`Remove the passkey added ${formatDay(createdAt)}`}
        >
          Remove
        </ActionButton>
      </div>
    </li>
  )
}

const methods: Readonly<Record<string, string>> = {
  passkey: 'By passkey',
  email: 'By a code sent by mail',
  sms: 'By a code sent by text message',
  identity_provider: 'By an identity provider',
  guest: 'As a guest',
  recovery: 'By recovery',
  device: 'A program',
}

/** Browsers that are signed out get no more messages about the money either. */
async function endMessagesElsewhere(): Promise<void> {
  const own = ownSubscriptionId()
  const { subscriptions } = await bursar.notifications.subscriptions.list()
  for (const { id } of subscriptions) if (id !== own) await bursar.notifications.subscriptions.remove({ id })
  await pushBrowsers.reload()
}

function Sessions() {
  const missing = useMissing(sessions, 'The list of sessions')
  const shown = loadedValue(sessions.state.value)?.sessions ?? []
  const others = shown.filter(({ current }) => !current)
  const end = async (id: string) => {
    await bursar.auth.sessions.revoke({ id })
    await sessions.reload()
    toast('It is signed out.')
  }
  // By one call: those beyond the page that is shown end too.
  const endOthers = async () => {
    await bursar.auth.sessions.revoke({ id: 'others' })
    await Promise.all([sessions.reload(), endMessagesElsewhere()])
    toast('All others are signed out.')
  }
  return (
    <Panel
      title="Signed in"
      more={
        others.length > 0 && (
          <ActionButton size="sm" run={endOthers} busy="Signing out">
            Sign out all others
          </ActionButton>
        )
      }
    >
      {missing}
      <ul class="rows">
        {shown.map(({ id, method, name, current, createdAt, expiresAt }) => (
          <li key={id}>
            <div class="item">
              <IconGlyph name={method === 'device' ? 'code' : 'laptop'} />
              <span class="item__main">
                <span class="item__name">
                  <span class="trim">
                    {name === null ? (methods[method] ?? method) : <Untrusted>{name}</Untrusted>}
                  </span>
                  {current && <Chip kind="good">This one</Chip>}
                </span>
                <span class="item__sub">
                  Since {formatWhen(createdAt)} · ends {formatWhen(expiresAt)}
                </span>
              </span>
              {!current && (
                <ActionButton size="sm" run={() => end(id)} busy="Signing out">
                  Sign out
                </ActionButton>
              )}
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

const actors: Readonly<Record<string, string>> = {
  person: 'You',
  admin: 'An administrator',
  key: 'An agent',
  system: 'Bursar itself',
}

function Journal() {
  const missing = useMissing(journal, 'The journal')
  const keys = loadedValue(useResource(agents))?.keys ?? []
  const entries = loadedValue(journal.state.value)?.entries ?? []
  return (
    <Panel
      title="Journal"
      foot="Entries are chained by their hashes: none can be changed or left out unseen."
    >
      {missing}
      <ul class="rows">
        {entries.map(({ id, action, actor, object, at }) => {
          const { words, icon } = actionInWords(action)
          const agent = keys.find(({ agentId }) => agentId === object.id)
          return (
            <li key={id}>
              <div class="item">
                <IconGlyph name={icon} />
                <span class="item__main">
                  <span class="item__name">
                    <span class="wrap">
                      {words}
                      {agent !== undefined && (
                        <>
                          {': '}
                          <Untrusted>{agent.name}</Untrusted>
                        </>
                      )}
                    </span>
                  </span>
                  <span class="item__sub">{actors[actor.kind]}</span>
                </span>
                <span class="item__end small faint num">{formatWhen(at)}</span>
              </div>
            </li>
          )
        })}
      </ul>
    </Panel>
  )
}

function SecondFactor() {
  const missing = useMissing(secondFactor, 'The second factor')
  const factor = loadedValue(secondFactor.state.value)
  const [dialog, open] = useState<'add' | 'remove' | null>(null)
  return (
    <Panel title="Second factor">
      {missing}
      {factor !== undefined && (
        <div class="panel__body stack">
          <div class="row row--wide">
            <span>Authenticator app</span>
            {factor.enrolled ? (
              <Chip kind="good" icon="check">
                On
              </Chip>
            ) : (
              <Chip kind="warn" icon="warning">
                Off
              </Chip>
            )}
          </div>
          {factor.enrolled && (
            <div class="row row--wide">
              <span>Recovery codes</span>
              <span class="small faint num">{factor.recoveryCodesLeft} left</span>
            </div>
          )}
          <p class="small faint">Asked for whatever loosens, reveals or removes.</p>
          <div>
            <button
              class="btn btn--sm"
              type="button"
              onClick={() => open(factor.enrolled ? 'remove' : 'add')}
            >
              {factor.enrolled ? 'Switch it off' : 'Add an authenticator app'}
            </button>
          </div>
        </div>
      )}
      {dialog === 'add' && <AddFactor close={() => open(null)} />}
      {dialog === 'remove' && <RemoveFactor close={() => open(null)} />}
    </Panel>
  )
}

/** The code's dots as one path. The API writes it as an image, which the page's policy would not load. */
function parseQrPath(uri: string): { viewBox: string; path: string } | null {
  const text = decodeURIComponent(uri.slice(uri.indexOf(',') + 1))
  const svg = new DOMParser().parseFromString(
    uri.includes(';base64') ? atob(text) : text,
    'image/svg+xml',
  ).documentElement
  const path = [...svg.querySelectorAll('path')].map((one) => one.getAttribute('d') ?? '').join('')
  const viewBox = svg.getAttribute('viewBox')
  return viewBox === null || path === '' ? null : { viewBox, path }
}

function AddFactor({ close }: { readonly close: () => void }) {
  const [enrolment, setEnrolment] = useState<{ uri: string; qr: string } | null>(null)
  const [codes, setCodes] = useState<readonly string[] | null>(null)
  const [code, setCode] = useState('')
  const begin = async () => {
    const { otpauthUri, qr } = await withProof(() => bursar.security.mfa({ action: 'enroll' }))
    if (otpauthUri != null) setEnrolment({ uri: otpauthUri, qr: qr ?? '' })
  }
  const activate = async () => {
    const { recoveryCodes } = await bursar.security.mfa({ action: 'activate', code })
    await Promise.all([secondFactor.reload(), session.reload()])
    setCodes(recoveryCodes ?? [])
  }
  if (codes !== null)
    return (
      <Dialog title="Keep these recovery codes" close={close}>
        <p>Each works once when the app is not at hand. They are shown only now.</p>
        <Copy text={codes.join(' ')} what="the recovery codes" />
        <div class="dialog__buttons">
          <button class="btn btn--primary" type="button" onClick={close}>
            I have kept them
          </button>
        </div>
      </Dialog>
    )
  if (enrolment === null)
    return (
      <Dialog title="Add an authenticator app" close={close}>
        <p>
          An app on your phone makes a code every 30 seconds. It is asked for before money rules are loosened.
        </p>
        <DialogButtons close={close}>
          <ActionButton kind="primary" run={begin} autofocus>
            Show the code to scan
          </ActionButton>
        </DialogButtons>
      </Dialog>
    )
  const image = parseQrPath(enrolment.qr)
  return (
    <Dialog title="Scan this with the app" close={close}>
      {image !== null && (
        <svg
          class="qr"
          viewBox={image.viewBox}
          role="img"
          aria-label="Code to scan with an authenticator app"
        >
          <path d={image.path} />
        </svg>
      )}
      <details>
        <summary class="linkbtn small">Or type the key</summary>
        <Copy text={new URL(enrolment.uri).searchParams.get('secret') ?? enrolment.uri} what="the key" />
      </details>
      <CodeField label="Code that the app shows" value={code} change={setCode} autofocus />
      <DialogButtons close={close}>
        <ActionButton kind="primary" run={activate} disabled={!isCode(code)} busy="Checking">
          Switch it on
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

function RemoveFactor({ close }: { readonly close: () => void }) {
  const [code, setCode] = useState('')
  const [problem, setProblem] = useState('')
  const remove = async () => {
    // The code is the proof. Asked for a second one, the call would repeat the wrong one until the account is locked.
    try {
      await bursar.security.mfa({ action: 'disable', code })
    } catch (error) {
      if (!isProblem(error, 'step_up_required')) throw error
      return setProblem(describeError(error))
    }
    await Promise.all([secondFactor.reload(), session.reload()])
    close()
    toast('The second factor is off.')
  }
  return (
    <Dialog title="Switch the second factor off?" close={close}>
      <p>Whoever is signed in as you can then loosen every rule.</p>
      <AuthenticatorCode value={code} change={setCode} error={problem} />
      <DialogButtons close={close} leave="Keep it on">
        <ActionButton kind="stop" run={remove} disabled={!isCode(code)} busy="Switching off">
          Switch it off
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

const mails = [
  ['immediately', 'At once'],
  ['daily', 'Once a day, at 08:00 UTC'],
  ['off', 'Never'],
] as const

/** How the owner is told that something waits. */
function Messages() {
  const [push, setPush] = useState<PushState>('unsupported')
  const settings = loadedValue(useResource(mailSettings))
  useEffect(() => void readPushState().then(setPush), [])
  const others = (loadedValue(useResource(pushBrowsers))?.subscriptions ?? []).filter(
    ({ id }) => push !== 'on' || id !== ownSubscriptionId(),
  )
  const remove = async (id: string) => {
    await withProof(() => bursar.notifications.subscriptions.remove({ id }))
    await pushBrowsers.reload()
    toast('That browser gets no more messages.')
  }
  const flip = async (isOn: boolean) => {
    await (isOn ? switchPushOn() : switchPushOff())
    setPush(await readPushState())
    await pushBrowsers.reload()
  }
  const mail = async (menu: HTMLSelectElement) => {
    const choice = mails[menu.selectedIndex]?.[0] ?? 'immediately'
    try {
      await withProof(() => bursar.notifications.settings.update({ approvals: choice }))
    } catch (error) {
      toastFailure(error)
    }
    await mailSettings.reload()
    // The menu shows the gateway's choice, also when this one was given up.
    menu.value = loadedValue(mailSettings.state.peek())?.approvals ?? choice
  }
  const hint =
    push === 'blocked'
      ? 'Blocked in the browser’s settings for this page.'
      : push === 'unsupported'
        ? 'This browser has none. Install the page to the home screen first on a phone.'
        : 'Within seconds, even while no page is open, as long as you are signed in here.'
  return (
    <Panel title="When something waits for you">
      <div class="panel__body stack">
        <Setting
          label="Message in this browser"
          hint={hint}
          isOn={push === 'on'}
          disabled={push === 'blocked' || push === 'unsupported'}
          change={flip}
        />
        {others.map(({ id, host, createdAt }) => (
          <div class="row row--wide" key={id}>
            <span class="stack stack--tight">
              <span>Another browser gets them too</span>
              <span class="small faint wrap">
                Since {formatWhen(createdAt)} · <Untrusted>{host}</Untrusted>
              </span>
            </span>
            <ActionButton
              size="sm"
              run={() => remove(id)}
              busy="Removing"
              label={`Remove the browser added ${formatWhen(createdAt)}`}
            >
              Remove
            </ActionButton>
          </div>
        ))}
        {settings !== undefined && (
          <Field label="Mail">
            {(props) => (
              <select
                class="input"
                value={settings.approvals}
                onChange={(event) => void mail(event.currentTarget)}
                {...props}
              >
                {mails.map(([choice, words]) => (
                  <option key={choice} value={choice}>
                    {words}
                  </option>
                ))}
              </select>
            )}
          </Field>
        )}
      </div>
    </Panel>
  )
}

function Allowances() {
  const missing = useMissing(allowances, 'The allowances')
  const shown = loadedValue(allowances.state.value)?.allowances ?? []
  const keys = loadedValue(useResource(agents))?.keys ?? []
  const nameSpender = ({ agentId }: Allowance) =>
    agentId === 'cards' ? 'All cards' : (keys.find((key) => key.agentId === agentId)?.name ?? 'An agent')
  const [isSetting, set] = useState(false)
  const isSigned = loadedValue(useResource(signers))?.signers.some(({ type }) => type === 'passkey') === true
  return (
    <Panel
      title="Allowances on chain"
      more={
        isSigned && (
          <button class="linkbtn" type="button" onClick={() => set(true)}>
            Change
          </button>
        )
      }
      foot="The chain itself enforces them: not even the keys of this gateway can spend more."
    >
      {missing}
      {missing === null && (
        <div class="panel__body stack">
          {shown.length === 0 && (
            <p class="small soft">None yet. They are set when your passkey signs them.</p>
          )}
          {shown.map((allowance) => (
            <div class="stack stack--tight" key={allowance.agentId}>
              <span class="stat__name">
                <Untrusted>{nameSpender(allowance)}</Untrusted>
                {!allowance.isOwn && <Chip kind="plain">Shared</Chip>}
              </span>
              <BudgetBurn
                used={allowance.spent}
                left={subtractDecimals(allowance.dailyMax, allowance.spent)}
                span="today"
              />
            </div>
          ))}
        </div>
      )}
      {isSetting && <AllowanceDialog close={() => set(false)} />}
    </Panel>
  )
}

/** The owner's passkey signs the allowance; without that signature the chain keeps the old one. */
function AllowanceDialog({ close }: { readonly close: () => void }) {
  const keys = loadedValue(useResource(agents))?.keys.filter(({ status }) => status !== 'revoked') ?? []
  const [agentId, setAgentId] = useState('cards')
  const [dailyMax, setDailyMax] = useState('100.00')
  const save = async () => {
    const intent = { agentId, dailyMax: dailyMax.trim() }
    const { intentId, challenge } = await withProof(() => bursar.wallets.allowances.intent(intent))
    const signature = await signWithPasskey(challenge)
    await withProof(() => bursar.wallets.allowances.set({ intentId, signature }))
    await allowances.reload()
    close()
    toast('The chain allows it from now on.')
  }
  return (
    <Dialog title="Allowance of a day" close={close}>
      <p>Your passkey signs it, and the wallet itself enforces it.</p>
      <Field label="For">
        {(props) => (
          <AgentSelect
            agents={keys}
            other={['cards', 'All cards']}
            value={agentId}
            choose={setAgentId}
            field={props}
          />
        )}
      </Field>
      <Field label="At most a day (UTC)" of="dailyMax" hint="0: nothing.">
        {(props) => (
          <MoneyInput
            value={dailyMax}
            onInput={(event) => setDailyMax(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <DialogButtons close={close}>
        <ActionButton kind="primary" icon="passkey" run={save} busy="Signing">
          Sign with passkey
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

const signerWords = { passkey: 'Passkey', eoa: 'EVM key', agent: 'Agent, up to its allowance' } as const

function Signers() {
  const missing = useMissing(signers, 'The list of signers')
  const shown = loadedValue(signers.state.value)?.signers ?? []
  return (
    <Panel title="Signers">
      {missing}
      {missing === null && shown.length === 0 && (
        <p class="panel__body small soft">
          {deployment.isSandbox
            ? 'The sandbox signs for this wallet. Your first passkey takes it over.'
            : 'Your first passkey becomes the owner of the wallet.'}
        </p>
      )}
      <ul class="rows">
        {shown.map(({ id, type, address, createdAt }) => (
          <li class="item item--two" key={id}>
            <span class="item__main">
              <span class="item__name">{signerWords[type]}</span>
              <span class="item__sub">
                {address === undefined ? '' : `${shortAddress(address)} · `}since {formatDay(createdAt)}
              </span>
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function LockDialog({ close }: { readonly close: () => void }) {
  const lock = async () => {
    await bursar.security.lock()
    signInAgain()
  }
  return (
    <Dialog title="Lock everything?" close={close}>
      <p>
        All agents, keys and cards stop, and every device is signed out, this one too. Unlocking takes the
        recovery of the account: a code to your address, and your passkey if you have one.
      </p>
      <DialogButtons close={close}>
        <ActionButton kind="stop" icon="lock" run={lock} busy="Locking">
          Lock everything
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}
