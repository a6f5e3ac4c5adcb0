/**
 * Shows push messages while no page is open. Built as a script of its own, because a service worker cannot import parts.
 * @see https://www.w3.org/TR/push-api/
 */

/** Message that the gateway encrypted for this browser. @property url path of this origin */
interface Message {
  readonly title: string
  readonly body: string
  readonly url: string
}

/** The parts of a service worker's scope that are used here. */
interface WorkerScope {
  readonly registration: { showNotification(title: string, options: object): Promise<void> }
  readonly clients: {
    matchAll(
      query: object,
    ): Promise<
      readonly { readonly url: string; focus(): Promise<unknown>; navigate(url: string): Promise<unknown> }[]
    >
    openWindow(url: string): Promise<unknown>
  }
  readonly location: Location
  addEventListener(type: 'push', listener: (event: PushedEvent) => void): void
  addEventListener(type: 'notificationclick', listener: (event: ClickEvent) => void): void
}

interface PushedEvent {
  readonly data: { json(): unknown } | null
  waitUntil(work: Promise<unknown>): void
}

interface ClickEvent {
  readonly notification: { readonly data: unknown; close(): void }
  waitUntil(work: Promise<unknown>): void
}

const worker = self as unknown as WorkerScope

worker.addEventListener('push', (event) => {
  const message = parseMessage(event.data?.json())
  if (message === null) return
  const { title, body, url } = message
  event.waitUntil(
    worker.registration.showNotification(title, { body, data: url, tag: url, icon: '/favicon.ico' }),
  )
})

worker.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(open(parsePath(event.notification.data)))
})

async function open(path: string): Promise<void> {
  const pages = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true })
  const page = pages.find(({ url }) => new URL(url).origin === worker.location.origin)
  // A page outside the worker's scope cannot be led elsewhere by it.
  if (page !== undefined && new URL(page.url).pathname === path) await page.focus()
  else await worker.clients.openWindow(path)
}

function parseMessage(value: unknown): Message | null {
  const { title, body, url } = Object(value)
  return typeof title === 'string' && typeof body === 'string' ? { title, body, url: parsePath(url) } : null
}

/** Leads to this origin only, whatever the message says. */
function parsePath(url: unknown): string {
  if (typeof url !== 'string') return '/'
  const target = new URL(url, worker.location.origin)
  return target.origin === worker.location.origin ? target.pathname : '/'
}
