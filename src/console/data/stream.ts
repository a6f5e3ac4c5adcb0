/** The account's events as they happen. One stream serves the whole console, and goes on by itself after a break. */
import { signal } from '@preact/signals'
import type { Event } from '../../client/operations.ts'
import { bursar, hasEnded, isShutOut, signInAgain } from './gateway.ts'

/** `live`, `reconnecting` after a break, `offline` while the browser has no network. @property since ISO 8601 */
export const connection = signal<{
  readonly status: 'live' | 'reconnecting' | 'offline'
  readonly since: string
}>({
  status: 'reconnecting',
  since: new Date().toISOString(),
})

/** @param event null: some may have been missed, so that everything shown must be read again. */
export type Listener = (event: Event | null) => void

const listeners = new Set<Listener>()

/** Adds a listener for the life of the page, or until the returned function is called. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function tell(event: Event | null): void {
  for (const listener of listeners) listener(event)
}

function become(status: 'live' | 'reconnecting' | 'offline'): void {
  if (connection.peek().status !== status) connection.value = { status, since: new Date().toISOString() }
}

const KEEP_ALIVE_MS = 4 * 60_000

/** Opens the stream. The returned function closes it. */
export function openStream(): () => void {
  const ending = new AbortController()
  addEventListener('offline', () => become('offline'), { signal: ending.signal })
  addEventListener('online', () => become('reconnecting'), { signal: ending.signal })
  void follow(ending.signal)
  // The cookie of a session is renewed by requests, and an open console makes none by itself.
  const timer = setInterval(() => void bursar.auth.session().catch(() => undefined), KEEP_ALIVE_MS)
  return () => {
    clearInterval(timer)
    ending.abort()
  }
}

async function follow(signal: AbortSignal): Promise<void> {
  let wasOpen = false
  const onStatus = (status: 'open' | 'broken') => {
    become(status === 'open' ? 'live' : navigator.onLine ? 'reconnecting' : 'offline')
    // The stream itself misses nothing. Answers read while it was down may be older than its position.
    if (status === 'open' && wasOpen) tell(null)
    if (status === 'open') wasOpen = true
  }
  while (!signal.aborted) {
    try {
      for await (const event of bursar.listen({ signal, onStatus })) {
        tell(event)
      }
    } catch (error) {
      if (isShutOut(error)) signInAgain()
      become('offline')
    }
    // A page that stays goes on when its person has signed in again.
    if (!hasEnded.peek()) return
    await signedInAgain(signal)
  }
}

function signedInAgain(signal: AbortSignal): Promise<void> {
  return new Promise((back) => {
    signal.addEventListener('abort', () => back(), { once: true })
    const stop = hasEnded.subscribe((isEnded) => {
      if (isEnded) return
      queueMicrotask(() => stop())
      back()
    })
  })
}
