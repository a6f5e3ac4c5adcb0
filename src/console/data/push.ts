/**
 * Push messages in this browser, so that the owner is told while no page is open. A browser has one subscription, and
 * it is one account's: the next person to sign in must neither get those messages nor see them as their own.
 * The gateway sends them for 30 days, unless the session is ended; each new sign-in by the same person prolongs them.
 */
import { bursar, isProblem, withProof } from './gateway.ts'

/** `unsupported`: the browser has no push. `blocked`: the person said no to it before. */
export type PushState = 'on' | 'off' | 'blocked' | 'unsupported'

const WORKER = '/assets/push-worker.js'
/** Where the browser keeps the ids of its subscription. They are no secrets: only their account can use them. */
const KEPT = 'push-subscription'

/** @property session that subscribed. */
interface Kept {
  readonly id: string
  readonly account: string
  readonly session: string
}

function isSupported(): boolean {
  return 'serviceWorker' in navigator && 'PushManager' in globalThis
}

/** Id of this browser's subscription; null if it never had one. */
export function ownSubscriptionId(): string | null {
  return readKept()?.id ?? null
}

function readKept(): Kept | null {
  const [id, account, session] = (localStorage.getItem(KEPT) ?? '').split(' ')
  return id === undefined || account === undefined || session === undefined ? null : { id, account, session }
}

async function findSubscription(): Promise<PushSubscription | null> {
  const registration = await navigator.serviceWorker.getRegistration(WORKER)
  return (await registration?.pushManager.getSubscription()) ?? null
}

let reading: Promise<PushState> | null = null

/**
 * Reads the state for the account that is signed in. A subscription of its earlier session goes on with this one; one
 * that is another account's, or was removed, ends.
 */
export function readPushState(): Promise<PushState> {
  // Two readers would subscribe twice.
  reading ??= readState().finally(() => {
    reading = null
  })
  return reading
}

async function readState(): Promise<PushState> {
  if (!isSupported()) return 'unsupported'
  if (Notification.permission === 'denied') return 'blocked'
  const subscription = await findSubscription()
  if (subscription === null) return 'off'
  const { publicKey, subscriptions } = await bursar.notifications.subscriptions.list()
  // A gateway whose key was replaced can send to this subscription for a while only.
  if (!isMadeWith(subscription, publicKey)) return renewSubscription(subscription, publicKey)
  if (subscriptions.some(({ id }) => id === ownSubscriptionId())) return 'on'
  const [kept, here] = [readKept(), await readSession()]
  if (kept === null || here === null || kept.account !== here.account || kept.session === here.session) {
    await endSubscription(subscription)
    return 'off'
  }
  try {
    // Only switching it on asks for a proof.
    await tellGateway(subscription, here, (call) => call())
  } catch (error) {
    if (!isProblem(error, 'step_up_required')) throw error
    await endSubscription(subscription)
    return 'off'
  }
  return 'on'
}

/** True also where the browser does not say with which key. */
function isMadeWith({ options }: PushSubscription, publicKey: string): boolean {
  const { applicationServerKey } = options
  if (applicationServerKey === null) return true
  const text = btoa(String.fromCharCode(...new Uint8Array(applicationServerKey)))
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '') === publicKey
}

/** Subscribes anew where that needs no proof; otherwise the person switches it on again. */
async function renewSubscription(subscription: PushSubscription, publicKey: string): Promise<PushState> {
  const [kept, here] = [readKept(), await readSession()]
  await endSubscription(subscription)
  if (here === null || kept?.account !== here.account) return 'off'
  const registration = await navigator.serviceWorker.register(WORKER)
  const renewed = await registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: publicKey,
  })
  try {
    await tellGateway(renewed, here, (call) => call())
  } catch (error) {
    await endSubscription(renewed)
    if (!isProblem(error, 'step_up_required')) throw error
    return 'off'
  }
  return 'on'
}

/** Account and session of this page; null if the session is not among the newest. */
async function readSession(): Promise<Omit<Kept, 'id'> | null> {
  const [{ account }, { sessions }] = await Promise.all([
    bursar.auth.session(),
    bursar.auth.sessions.list({ limit: 100 }),
  ])
  const current = sessions.find((one) => one.current)
  return current === undefined ? null : { account: account.id, session: current.id }
}

async function endSubscription(subscription: PushSubscription | null): Promise<void> {
  localStorage.removeItem(KEPT)
  await subscription?.unsubscribe()
}

/** Asks the person, then tells the gateway where to send. @throws Error when the person or the browser says no */
export async function switchPushOn(): Promise<void> {
  const { publicKey } = await bursar.notifications.subscriptions.list()
  if ((await Notification.requestPermission()) !== 'granted')
    throw new DOMException('Notifications were not allowed.', 'NotAllowedError')
  const registration = await navigator.serviceWorker.register(WORKER)
  await registration.update().catch(() => undefined)
  const subscription = await registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: publicKey,
  })
  const here = await readSession()
  if (here === null) throw new TypeError('The session is not in the list.')
  await tellGateway(subscription, here)
}

async function tellGateway(
  subscription: PushSubscription,
  { account, session }: Omit<Kept, 'id'>,
  prove: typeof withProof = withProof,
) {
  const { endpoint, keys } = subscription.toJSON()
  const { p256dh, auth } = keys ?? {}
  if (endpoint === undefined || p256dh === undefined || auth === undefined)
    throw new TypeError('The browser gave no keys.')
  const { id } = await prove(() =>
    bursar.notifications.subscriptions.create({ endpoint, keys: { p256dh, auth } }),
  )
  localStorage.setItem(KEPT, [id, account, session].join(' '))
}

/** Has the gateway forget this browser, which needs a proof, and ends its subscription. @throws GivenUp */
export async function switchPushOff(): Promise<void> {
  const id = ownSubscriptionId()
  if (id !== null)
    await withProof(() => bursar.notifications.subscriptions.remove({ id })).catch((error: unknown) => {
      // It may have been removed already.
      if (!isProblem(error, 'not_found')) throw error
    })
  await endOwnPush()
}

/** Ends the subscription in this browser. The gateway ends its part with the session. */
export async function endOwnPush(): Promise<void> {
  if (isSupported()) await endSubscription(await findSubscription())
}
