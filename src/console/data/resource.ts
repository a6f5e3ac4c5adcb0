/** Data of the gateway as signals: loaded when first shown, and again when an event says that they changed. */
import { type ReadonlySignal, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { isShutOut, signInAgain } from './gateway.ts'
import { onEvent } from './stream.ts'

export type Loaded<Value> =
  | { readonly status: 'loading' }
  | { readonly status: 'failed'; readonly error: unknown }
  /** @property error the newest attempt failed; the value is older. */
  | { readonly status: 'ready'; readonly value: Value; readonly error: unknown }

export interface Resource<Value> {
  readonly state: ReadonlySignal<Loaded<Value>>
  /** Loads again. Calls during a load share the next one. */
  readonly reload: () => Promise<void>
  /** Replaces the value with what an operation answered. */
  readonly put: (value: Value) => void
  /** Loads once, if nothing was loaded yet. */
  readonly need: () => void
}

/** Gathers bursts of events into one request. */
const GATHER_MS = 60

/** @param load reads the value. @param types prefixes of event types after which it is read again, such as `transfer.` */
export function resource<Value>(
  load: () => PromiseLike<Value>,
  types: readonly string[] = [],
): Resource<Value> {
  const state = signal<Loaded<Value>>({ status: 'loading' })
  let isNeeded = false
  let running: Promise<void> | null = null
  let isStale = false
  const run = async () => {
    do {
      isStale = false
      try {
        state.value = { status: 'ready', value: await load(), error: null }
      } catch (error) {
        if (isShutOut(error)) signInAgain()
        const now = state.peek()
        state.value = now.status === 'ready' ? { ...now, error } : { status: 'failed', error }
      }
    } while (isStale)
    running = null
  }
  const reload = () => {
    isStale = running !== null
    running ??= run()
    return running
  }
  let timer: ReturnType<typeof setTimeout> | undefined
  const reloadSoon = () => {
    clearTimeout(timer)
    timer = setTimeout(() => void reload(), GATHER_MS)
  }
  onEvent((event) => {
    if (isNeeded && (event === null || types.some((prefix) => event.type.startsWith(prefix)))) reloadSoon()
  })
  return {
    state,
    reload,
    put: (value) => {
      state.value = { status: 'ready', value, error: null }
    },
    need: () => {
      if (isNeeded) return
      isNeeded = true
      void reload()
    },
  }
}

/** The state of a resource, loaded when the component is first shown. */
export function useResource<Value>(source: Resource<Value>): Loaded<Value> {
  useEffect(source.need, [source])
  return source.state.value
}

/** The value of a resource; undefined while there is none. */
export function loadedValue<Value>(state: Loaded<Value>): Value | undefined {
  return state.status === 'ready' ? state.value : undefined
}

/** Resources by id, such as one per agent; equal ids share one. */
export function resourceById<Value>(
  load: (id: string) => PromiseLike<Value>,
  types: readonly string[] = [],
): (id: string) => Resource<Value> {
  const known = new Map<string, Resource<Value>>()
  return (id) => {
    const found = known.get(id) ?? resource(() => load(id), types)
    known.set(id, found)
    return found
  }
}
