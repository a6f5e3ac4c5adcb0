/**
 * Takes over this process's sources of time, randomness and network for what does not ask a gateway's ports: packages, the
 * database, the chain. They get those of the gateway whose task runs now. For processes that do nothing but simulate.
 */
import nodeCrypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers'
import timersPromises from 'node:timers/promises'
import { timersOf } from './ports.ts'
import type { Scheduler } from './scheduler.ts'

/** @property fetch the network of the gateway whose task runs. */
export interface Realm {
  readonly scheduler: Scheduler
  readonly fetch: typeof globalThis.fetch
}

/** This process's own clock, for progress and figures. */
export const wallClock: () => number = performance.now.bind(performance)

let realm: Realm | undefined
let isTaken = false

/** Enters a simulation; the one before ends. */
export function enterRealm(next: Realm): void {
  realm = next
  if (!isTaken) takeOver()
  isTaken = true
}

function takeOver(): void {
  const scheduler = () => {
    if (realm === undefined) throw new Error('no simulation runs')
    return realm.scheduler
  }
  const now = () => scheduler().now + scheduler().current.skew
  const real = { ...nodeCrypto, Date, subtle: globalThis.crypto.subtle }

  Object.defineProperty(globalThis, 'Date', {
    configurable: true,
    writable: true,
    // One class stays one class: `instanceof` must hold.
    value: new Proxy(real.Date, {
      construct: (target, args: []) => (args.length === 0 ? new target(now()) : new target(...args)),
      get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
    }),
  })
  const own = () => timersOf(scheduler(), scheduler().current)
  Object.defineProperty(performance, 'now', { value: () => own().monotonic() })
  Math.random = () => scheduler().bytes.below(2 ** 30) / 2 ** 30
  globalThis.fetch = (input, init) => {
    if (realm === undefined) throw new Error('no simulation runs')
    return realm.fetch(input, init)
  }

  const handleOf = (cancel: () => void) => {
    const handle = {
      cancel,
      unref: () => handle,
      ref: () => handle,
      hasRef: () => true,
      refresh: () => handle,
    }
    return handle
  }
  const setTimer = (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
    handleOf(own().after(ms, () => run(...args)))
  const setRepeated = (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
    handleOf(own().every(ms, () => run(...args)))
  const setSoon = (run: (...args: unknown[]) => void, ...args: unknown[]) => {
    let isOver = false
    scheduler().schedule(scheduler().current, 'immediate', () => {
      if (!isOver) run(...args)
    })
    return handleOf(() => {
      isOver = true
    })
  }
  const clear = (handle?: { cancel?: () => void } | null) => handle?.cancel?.()
  const replaced = {
    setTimeout: setTimer,
    setInterval: setRepeated,
    setImmediate: setSoon,
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  }
  Object.assign(globalThis, replaced)
  Object.assign(timers, replaced)
  Object.assign(timersPromises, {
    setTimeout: (ms: number, value?: unknown, { signal }: { signal?: AbortSignal } = {}) =>
      own()
        .sleep(ms, { signal })
        .then(() => value),
    setImmediate: () => new Promise<void>((resolve) => setSoon(() => resolve())),
  })
  AbortSignal.timeout = (ms) => own().deadline(ms)

  const fill = <View extends ArrayBufferView>(view: View) => scheduler().bytes.fill(view)
  const randomUUID = () => {
    const bytes = fill(Buffer.alloc(16))
    bytes[6] = (bytes.readUInt8(6) & 15) | 64
    bytes[8] = (bytes.readUInt8(8) & 63) | 128
    return bytes.toString('hex').replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5')
  }
  const later = (done: (error: null, ...values: unknown[]) => void, ...values: unknown[]) =>
    void setSoon(() => done(null, ...values))
  Object.assign(nodeCrypto, {
    randomUUID,
    randomFillSync: fill,
    randomBytes: (length: number, done?: (error: null, bytes: Buffer) => void) => {
      const bytes = fill(Buffer.alloc(length))
      return done === undefined ? bytes : later(done as never, bytes)
    },
    randomInt: (low: number, high?: number) =>
      high === undefined ? scheduler().bytes.below(low) : low + scheduler().bytes.below(high - low),
    verify: (...args: [never, never, never, never, ((error: null, isValid: boolean) => void)?]) => {
      const [algorithm, data, key, signature, done] = args
      const isValid = real.verify(algorithm, data, key, signature)
      return done === undefined ? isValid : later(done as never, isValid)
    },
    sign: (...args: [never, never, never, ((error: null, signature: Buffer) => void)?]) => {
      const [algorithm, data, key, done] = args
      const signature = real.sign(algorithm, data, key)
      return done === undefined ? signature : later(done as never, signature)
    },
  })
  syncBuiltinESMExports()
  Object.defineProperties(globalThis.crypto, {
    getRandomValues: { value: fill },
    randomUUID: { value: randomUUID },
    // Its work ends in threads.
    subtle: {
      value: new Proxy(real.subtle, {
        get: (target, name) => {
          const member: unknown = Reflect.get(target, name)
          if (typeof member !== 'function') return member
          return (...args: unknown[]) => scheduler().track(Reflect.apply(member, target, args))
        },
      }),
    },
  })
}
