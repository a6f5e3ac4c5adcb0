/** The frame of every page: rail, top bar, tabs on phones, and the stop button that is always in reach. */
import { computed } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Link, useLocation } from 'wouter-preact'
import { account, deployment, session, signOut } from '../data/account.ts'
import { bursar } from '../data/gateway.ts'
import { agents, approvals, wallet } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { connection } from '../data/stream.ts'
import { isAt, type Route, routes } from '../routes.ts'
import { formatDecimal, isAmount } from '../words/money.ts'
import { count, extractInitials } from '../words/names.ts'
import { formatWhen } from '../words/time.ts'
import { ActionButton, Dialog, DialogButtons, Field } from './controls.tsx'
import { EndedDialog } from './ended.tsx'
import { Icon } from './icon.tsx'
import { Count } from './marks.tsx'
import { Banner, Toasts, toast } from './messages.tsx'
import { ProofDialog } from './proof.tsx'
import { StartAgain, stoppedAgents } from './start-again.tsx'

export const waiting = computed(
  () =>
    loadedValue(approvals.state.value)?.approvals.filter(({ status }) => status === 'pending').length ?? 0,
)

type Sheet = 'stop' | 'start' | 'fund' | 'more' | null

export function Shell({ children }: { readonly children: ComponentChildren }) {
  const [path] = useLocation()
  const [sheet, open] = useState<Sheet>(null)
  useResource(session)
  useResource(approvals)
  useResource(agents)
  useEffect(() => open(null), [path])
  const close = () => open(null)
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <div class="shell">
        <Rail path={path} stop={() => open('stop')} />
        <div class="page">
          <TopBar path={path} fund={() => open('fund')} />
          <main class={`content${isNarrow(path) ? ' content--narrow' : ''}`} id="main" tabIndex={-1}>
            <Connection />
            <GuestBanner />
            {children}
          </main>
        </div>
      </div>
      <Tabs path={path} open={open} />
      <Toasts />
      {sheet === 'stop' && <StopAll close={close} start={() => open('start')} />}
      {sheet === 'start' && <StartAgain close={close} />}
      {sheet === 'fund' && <AddMoney close={close} />}
      {sheet === 'more' && <More path={path} close={close} />}
      <ProofDialog />
      <EndedDialog />
    </>
  )
}

/** A decision is read in one column. */
function isNarrow(path: string): boolean {
  return /^\/(approvals\/.+|accounts\/(send|convert))/.test(path)
}

function visibleRoutes(): readonly Route[] {
  return routes.filter(({ isOperator = false }) => !isOperator || account.value?.role === 'admin')
}

function Brand() {
  return (
    <svg class="brand" viewBox="0 0 22 22" aria-hidden="true">
      <rect class="brand__plate" width="22" height="22" rx="6" />
      <path
        class="brand__coin"
        d="M5 7.25A2.25 2.25 0 0 1 7.25 5h4.5a3.2 3.2 0 0 1 2.2 5.5A3.4 3.4 0 0 1 12.4 17H7.25A2.25 2.25 0 0 1 5 14.75zm3 .75v1.75h3.4a.88.88 0 0 0 0-1.75zm0 4.25V14h4a.88.88 0 0 0 0-1.75z"
      />
    </svg>
  )
}

function Rail({ path, stop }: { readonly path: string; readonly stop: () => void }) {
  const shown = visibleRoutes()
  const group = (name: Route['group']) =>
    shown
      .filter((route) => route.group === name)
      .map((route) => <NavLink key={route.path} route={route} path={path} />)
  return (
    <nav class="rail" aria-label="Main">
      <Link class="rail__brand" href="/">
        <Brand />
        <span>Bursar</span>
      </Link>
      <div class="stack stack--tight rail__nav">
        {group('main')}
        <p class="rail__head">Money</p>
        {group('money')}
        <p class="rail__head">Settings</p>
        {group('settings')}
      </div>
      <div class="rail__foot">
        <button class="btn btn--stopline btn--full rail__stop" type="button" onClick={stop}>
          <Icon name="stop" />
          <span>Stop all agents</span>
        </button>
        <Who />
      </div>
    </nav>
  )
}

function NavLink({ route, path }: { readonly route: Route; readonly path: string }) {
  return (
    <Link class="navlink" href={route.path} aria-current={isAt(route, path) ? 'page' : undefined}>
      <Icon name={route.icon} />
      <span class="trim">{route.name}</span>
      {route.path === '/approvals' && waiting.value > 0 && <Count number={waiting.value} of="waiting" />}
    </Link>
  )
}

function Who() {
  const person = account.value
  if (person === undefined) return null
  return (
    <Link class="who" href="/security">
      <span class="glyph glyph--round" aria-hidden="true">
        {extractInitials(person.displayName)}
      </span>
      <span class="who__text">
        <span class="trim">
          <bdi>{person.displayName}</bdi>
        </span>
        <span class="trim small faint">
          {person.guest ? 'Guest' : person.role === 'admin' ? 'Administrator' : 'Owner'}
        </span>
      </span>
    </Link>
  )
}

function TopBar({ path, fund }: { readonly path: string; readonly fund: () => void }) {
  const route = routes.find((one) => isAt(one, path))
  return (
    <header class="topbar">
      <div class="crumbs">
        <Link class="only-phone" href="/" aria-label="Bursar, home">
          <Brand />
        </Link>
        {route !== undefined && path !== route.path ? (
          <Link href={route.path}>{route.name}</Link>
        ) : (
          <b class="only-phone">{route?.name ?? 'Bursar'}</b>
        )}
        <Live />
      </div>
      {deployment.isSandbox && (
        <span class="sandbox">
          Sandbox
          <button class="sandbox__add" type="button" onClick={fund}>
            <Icon name="plus" small />
            <span>
              Add <span class="only-wide">sandbox</span> money
            </span>
          </button>
        </span>
      )}
      <button class="iconbtn" type="button" aria-label="Switch between light and dark" onClick={switchTheme}>
        <Icon name="theme" />
      </button>
    </header>
  )
}

function switchTheme(): void {
  const { dataset } = document.documentElement
  const isDark = dataset.theme ? dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
  dataset.theme = isDark ? 'light' : 'dark'
  localStorage.setItem('theme', dataset.theme)
}

function Live() {
  const { status } = connection.value
  const words = { live: 'Live', reconnecting: 'Reconnecting', offline: 'Offline' }[status]
  return <span class={`only-wide live${status === 'live' ? '' : ' live--off'}`}>{words}</span>
}

/** A break of less than this is not worth a banner. */
const BANNER_AFTER_MS = 3_000

function Connection() {
  const { status, since } = connection.value
  const [isLong, setLong] = useState(false)
  useEffect(() => {
    setLong(false)
    if (status === 'live') return
    const timer = setTimeout(() => setLong(true), BANNER_AFTER_MS)
    return () => clearTimeout(timer)
  }, [status])
  if (status === 'live' || !isLong) return null
  return (
    <Banner kind="warn" icon="offline">
      {status === 'offline' ? 'You are offline.' : 'The connection to Bursar is interrupted.'} What you see is
      from {formatWhen(since)}. Stop works again once you are back.
    </Banner>
  )
}

function GuestBanner() {
  if (account.value?.guest !== true) return null
  return (
    <Banner
      kind="warn"
      icon="key"
      action={
        <Link class="btn btn--sm" href="/security">
          Add a passkey
        </Link>
      }
    >
      This account lives in this browser for 30 days. A passkey keeps it.
    </Banner>
  )
}

function Tabs({ path, open }: { readonly path: string; readonly open: (sheet: Sheet) => void }) {
  const tab = (to: string) => {
    const route = routes.find((one) => one.path === to)
    if (route === undefined) return null
    return (
      <Link class="tab" href={route.path} aria-current={isAt(route, path) ? 'page' : undefined}>
        <Icon name={route.icon} />
        {route.name}
        {to === '/approvals' && waiting.value > 0 && <Count number={waiting.value} of="waiting" />}
      </Link>
    )
  }
  return (
    <nav class="tabs" aria-label="Main, phone">
      {tab('/')}
      {tab('/agents')}
      <button class="tab tab--stop" type="button" onClick={() => open('stop')}>
        <span>
          <Icon name="stop" />
        </span>
        Stop all
      </button>
      {tab('/approvals')}
      <button class="tab" type="button" onClick={() => open('more')}>
        <Icon name="more" />
        More
      </button>
    </nav>
  )
}

function More({ path, close }: { readonly path: string; readonly close: () => void }) {
  const inTabs = new Set(['/', '/agents', '/approvals'])
  return (
    <Dialog title="More" close={close}>
      <div class="sheet__grid">
        {visibleRoutes()
          .filter((route) => !inTabs.has(route.path))
          .map((route) => (
            <Link
              key={route.path}
              href={route.path}
              aria-current={isAt(route, path) ? 'page' : undefined}
              onClick={close}
            >
              <Icon name={route.icon} />
              {route.name}
            </Link>
          ))}
      </div>
      <div class="row">
        <span class="grow">
          <Who />
        </span>
        <ActionButton size="sm" run={signOut}>
          Sign out
        </ActionButton>
      </div>
      <DialogButtons close={close} leave="Close" />
    </Dialog>
  )
}

function StopAll({ close, start }: { readonly close: () => void; readonly start: () => void }) {
  const state = agents.state.value
  const active = loadedValue(state)?.keys.filter(({ status }) => status === 'active') ?? []
  const stopped = stoppedAgents(loadedValue(state)?.keys ?? []).length
  // A list that is missing, old or cut proves nothing: stopping is offered whenever an agent may be active.
  const isWhole = state.status === 'ready' && state.error === null && state.value.isWhole
  const isLive = connection.value.status === 'live'
  if (isWhole && isLive && active.length === 0)
    return (
      <Dialog title="No agent is active" close={close}>
        <p>Nothing can be spent by an agent right now.</p>
        <DialogButtons close={close} leave="Close">
          {stopped > 0 && (
            <button class="btn btn--primary" type="button" onClick={start}>
              <Icon name="play" small />
              Start again…
            </button>
          )}
        </DialogButtons>
      </Dialog>
    )
  const known = active.length === 1 ? '1 agent' : `all ${active.length} agents`
  const words = isWhole && active.length > 0 ? known : 'all agents'
  const stop = async () => {
    const { paused } = await bursar.agents.pause()
    close()
    toast(`${count(paused, 'agent is', 'agents are')} stopped.`)
    await agents.reload()
  }
  return (
    <Dialog title={`Stop ${words} now?`} close={close}>
      <p>
        Nothing more is spent from this second on, on every device: transfers, cards and purchases are
        refused. What is already sent stays sent. Starting them again needs your second factor.
      </p>
      <DialogButtons close={close}>
        <ActionButton kind="stop" icon="stop" run={stop} autofocus busy="Stopping">
          Stop {words}
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

const coins = ['USDC', 'EURC', 'USDT', 'PYUSD'] as const

function AddMoney({ close }: { readonly close: () => void }) {
  const mine = loadedValue(useResource(wallet))
  const [amount, setAmount] = useState('100.00')
  const [token, setToken] = useState<(typeof coins)[number]>('USDC')
  const add = async () => {
    if (mine === undefined) return
    await bursar.sandbox.faucet({ address: mine.safeAddress, token, amount })
    close()
    await wallet.reload()
    toast(`${formatDecimal(amount)} ${token} has arrived.`)
  }
  return (
    <Dialog title="Add sandbox money" close={close}>
      <p>It looks and moves like money and is worth nothing.</p>
      <Field label="Amount" of="amount" error={isAmount(amount) ? undefined : 'An amount such as 12.50.'}>
        {(props) => (
          <input
            class="input num"
            inputMode="decimal"
            value={amount}
            onInput={(event) => setAmount(event.currentTarget.value.trim())}
            {...props}
          />
        )}
      </Field>
      <Field label="Currency">
        {(props) => (
          <select
            class="input"
            value={token}
            onChange={(event) => setToken(coins[event.currentTarget.selectedIndex] ?? 'USDC')}
            {...props}
          >
            {coins.map((coin) => (
              <option key={coin}>{coin}</option>
            ))}
          </select>
        )}
      </Field>
      <DialogButtons close={close}>
        <ActionButton
          kind="primary"
          run={add}
          busy="Adding"
          disabled={mine === undefined || !isAmount(amount)}
        >
          Add {formatDecimal(amount)} {token}
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}
