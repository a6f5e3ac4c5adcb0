/**
 * Purchases whose answer no program has got yet, and what was spent. Both are on disk before the gateway is called, so that a
 * kill at any moment neither pays twice for one answer nor forgets what was paid.
 *
 * An entry is held by the requests that wait for it. The next request that asks for the same takes over an entry that nobody
 * holds, with its idempotency key; while it is held, an equal request is another purchase, unless both name the same key.
 */
import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../core/base/clock.ts'
import { randomToken } from '../../core/base/ids.ts'
import { timers } from '../../core/base/timers.ts'
import { isSecretField } from '../../rails/buying/secrets.ts'
import { makeFolder, readFile, removeFile, removeUnfinished, replaceFile } from './private-files.ts'

/** Answers are kept by the gateway for a day: an older entry has nothing to give. */
const KEPT_MS = 86_400_000
const CLEAN_MS = 3_600_000

/** Secrets of a request, which are never on disk: after a restart the repeat brings its own. */
export interface Secrets {
  readonly fields: Readonly<Record<string, string>>
  readonly bearer: string | null
}

/**
 * What is asked for. @property key idempotency key that the program chose; null: none. @property fields header fields of the
 * purchase, but its secrets.
 */
export interface Wanted {
  readonly method: string
  readonly url: string
  readonly body: Buffer | null
  readonly key: string | null
  readonly fields: Readonly<Record<string, string>>
  readonly secrets: Secrets
}

/** Amounts in millionths of a US dollar, which is the unit of USDC. */
export interface OpenPurchase {
  readonly key: string
  readonly hash: string
  readonly isNamed: boolean
  readonly openedAt: string
  /** The most that it may cost. */
  readonly maxMicros: bigint
  /** Null: not known. */
  readonly chargedMicros: bigint | null
  /** Those of the first request: programs change some with each try, and repeats of a purchase must be equal. */
  readonly fields: Readonly<Record<string, string>>
  readonly isGiven: boolean
}

/**
 * An entry in memory. @property holders requests that wait for it. @property secrets of the first request; null after a
 * restart. @property isNew the gateway was not called for it.
 */
export interface HeldPurchase {
  purchase: OpenPurchase
  holders: number
  secrets: Secrets | null
  isNew: boolean
}

/** Why nothing may be bought. `storage_failed`: the purchase could not be written down. */
export type HoldRefusal = 'budget' | 'idempotency_key_reused' | 'storage_failed'

export interface PurchaseBook {
  /** Waits for money that other purchases may leave. @returns the reason why nothing may be bought. */
  hold(wanted: Wanted, isGone: () => boolean): Promise<HeldPurchase | HoldRefusal>
  /** Writes what has changed. */
  update(held: HeldPurchase, change: Pick<OpenPurchase, 'chargedMicros'>): void
  /** The request no longer waits for it; the answer was not given. */
  release(held: HeldPurchase): void
  /** The answer was given; until {@link PurchaseBook.close} it may turn out that it was lost. */
  give(held: HeldPurchase): void
  /** The answer that seemed given was lost. */
  reopen(held: HeldPurchase): void
  /** The answer is with the program. */
  close(held: HeldPurchase): void
  /** It was not paid, and never will be. */
  cancel(held: HeldPurchase): void
  spentMicros(): bigint
  stop(): void
}

/**
 * @param folder of one agent's key: its idempotency keys mean nothing to another's.
 * @throws Error for a file that is damaged.
 */
export function openPurchaseBook(
  folder: string,
  {
    maxMicros,
    budgetMicros,
    report,
  }: {
    readonly maxMicros: bigint
    readonly budgetMicros: bigint
    readonly report: (line: string) => void
  },
): PurchaseBook {
  const openFolder = makeFolder(folder, 'open')
  const spentFile = join(folder, 'spent.json')
  for (const each of [folder, openFolder]) removeUnfinished(each)
  let spent = parseOwn(spentFile, parseSpent) ?? { micros: 0n, lastKey: null }
  const entries = new Map<string, HeldPurchase>()
  const waiting = new Set<() => void>()
  for (const name of readdirSync(openFolder)) {
    const purchase = name.endsWith('.json') ? parseOwn(join(openFolder, name), parsePurchase) : null
    if (purchase === null) continue
    // A kill between both files of `settle` leaves one that is counted.
    const isCounted = purchase.key === spent.lastKey
    if (isCounted && !purchase.isNamed) removeFile(join(openFolder, name))
    else
      entries.set(purchase.key, {
        purchase: { ...purchase, isGiven: purchase.isGiven || isCounted },
        holders: 0,
        secrets: null,
        isNew: false,
      })
  }

  const findPath = ({ key }: OpenPurchase) => join(openFolder, `${digest(key).slice(0, 32)}.json`)
  const write = ({ purchase }: HeldPurchase) => replaceFile(findPath(purchase), writePurchase(purchase))
  /** After a purchase the file on disk is right without it: it says that more may have been spent. */
  const tryToWrite = (work: () => void) => {
    try {
      work()
    } catch {
      report('a file of the proxy cannot be written')
    }
  }
  const wake = () => {
    for (const go of waiting) go()
    waiting.clear()
  }
  const committed = ({ purchase }: HeldPurchase) =>
    purchase.isGiven && purchase.isNamed ? 0n : (purchase.chargedMicros ?? purchase.maxMicros)
  const listEntries = () => [...entries.values()]
  const used = () => listEntries().reduce((sum, entry) => sum + committed(entry), spent.micros)
  const drop = (held: HeldPurchase) => {
    entries.delete(held.purchase.key)
    tryToWrite(() => removeFile(findPath(held.purchase)))
    wake()
  }
  /** Counts an entry as spent. A named one stays for its repeats. */
  const settle = (held: HeldPurchase) => {
    const { purchase } = held
    if (!(purchase.isGiven && purchase.isNamed)) {
      spent = { micros: spent.micros + committed(held), lastKey: purchase.key }
      const counted = JSON.stringify({ micros: String(spent.micros), lastKey: spent.lastKey })
      tryToWrite(() => replaceFile(spentFile, counted))
    }
    if (!purchase.isNamed) return drop(held)
    held.purchase = { ...purchase, isGiven: true }
    tryToWrite(() => write(held))
    wake()
  }
  const clean = () => {
    const oldest = systemClock().getTime() - KEPT_MS
    for (const held of listEntries()) {
      if (held.holders > 0 || Date.parse(held.purchase.openedAt) > oldest) continue
      // It may have been paid: it counts.
      settle(held)
      if (held.purchase.isNamed) drop(held)
    }
  }
  clean()
  const stopCleaning = timers.every(CLEAN_MS, clean, { isIdle: true })

  /** The entry to go on with: the named one, or an equal one that was given up. */
  const find = (hash: string, key: string | null) =>
    key !== null
      ? entries.get(key)
      : listEntries().find(
          ({ purchase, holders }) =>
            purchase.hash === hash && !purchase.isNamed && !purchase.isGiven && holders === 0,
        )

  return {
    async hold(wanted, isGone) {
      const hash = hashWanted(wanted)
      for (;;) {
        // The gateway no longer knows the key of an older entry, and would pay once more.
        clean()
        const found = find(hash, wanted.key)
        if (found !== undefined) {
          if (found.purchase.hash !== hash) return 'idempotency_key_reused'
          found.holders += 1
          return found
        }
        const left = budgetMicros - used()
        const isBusy = listEntries().some(({ holders }) => holders > 0)
        if (left >= maxMicros || (left > 0n && !isBusy)) {
          const purchase: OpenPurchase = {
            key: wanted.key ?? `proxy-${randomToken(18)}`,
            hash,
            isNamed: wanted.key !== null,
            openedAt: systemClock().toISOString(),
            maxMicros: left < maxMicros ? left : maxMicros,
            chargedMicros: null,
            fields: wanted.fields,
            isGiven: false,
          }
          const held = { purchase, holders: 1, secrets: wanted.secrets, isNew: true }
          try {
            write(held)
          } catch {
            // What cannot be remembered must not be bought.
            return 'storage_failed'
          }
          entries.set(purchase.key, held)
          return held
        }
        if (!isBusy || isGone()) return 'budget'
        // Most purchases cost less than the most that they may cost, which is set aside meanwhile.
        await new Promise<void>((resolve) => waiting.add(resolve))
      }
    },
    update(held, change) {
      held.purchase = { ...held.purchase, ...change }
      tryToWrite(() => write(held))
      wake()
    },
    release(held) {
      held.holders -= 1
      wake()
    },
    give(held) {
      if (!held.purchase.isNamed) held.purchase = { ...held.purchase, isGiven: true }
    },
    reopen(held) {
      if (!held.purchase.isNamed) held.purchase = { ...held.purchase, isGiven: false }
      held.holders -= 1
      wake()
    },
    close(held) {
      held.holders -= 1
      settle(held)
    },
    cancel(held) {
      if (entries.get(held.purchase.key) === held) drop(held)
    },
    spentMicros: used,
    stop: stopCleaning,
  }
}

/** Requests with one hash are the same to a program that repeats. The answer to one login is not for another. */
function hashWanted({ method, url, body, secrets }: Wanted): string {
  const fields = Object.entries(secrets.fields).filter(([name]) => isSecretField(name))
  const login = [...fields.toSorted().flat(), secrets.bearer ?? []].flat()
  return digest(JSON.stringify([method, url, digest(body ?? ''), ...(login.length === 0 ? [] : [login])]))
}

function digest(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** Reads a file of ours. @returns null if there is none. @throws Error for a damaged one: what it counts must not be forgotten. */
function parseOwn<Content>(path: string, parse: (text: string) => Content): Content | null {
  const text = readFile(path)
  try {
    return text === null ? null : parse(text)
  } catch {
    throw new Error(`${path} is damaged. What it says may be spent; delete it to forget that.`)
  }
}

interface Spent {
  readonly micros: bigint
  /** The purchase that was counted last. */
  readonly lastKey: string | null
}

function parseSpent(text: string): Spent {
  const { micros, lastKey }: { micros?: unknown; lastKey?: unknown } = { ...JSON.parse(text) }
  return { micros: parseCount(micros), lastKey: typeof lastKey === 'string' ? lastKey : null }
}

/** @throws Error for what is no amount in millionths. */
function parseCount(value: unknown): bigint {
  if (typeof value === 'string' && /^\d{1,20}$/.test(value)) return BigInt(value)
  throw new Error('no amount')
}

function writePurchase({ maxMicros, chargedMicros, ...rest }: OpenPurchase): string {
  const charged = chargedMicros === null ? null : String(chargedMicros)
  return JSON.stringify({ ...rest, maxMicros: String(maxMicros), chargedMicros: charged })
}

/** @throws Error for a text that is no purchase. */
function parsePurchase(text: string): OpenPurchase {
  const members: Record<string, unknown> = { ...JSON.parse(text) }
  const { key, hash, isNamed, openedAt, maxMicros, chargedMicros, fields, isGiven } = members
  if (typeof key !== 'string' || typeof hash !== 'string' || typeof openedAt !== 'string')
    throw new Error('no purchase')
  return {
    key,
    hash,
    openedAt,
    isNamed: isNamed === true,
    isGiven: isGiven === true,
    maxMicros: parseCount(maxMicros),
    chargedMicros: chargedMicros === null ? null : parseCount(chargedMicros),
    fields:
      typeof fields === 'object' && fields !== null
        ? Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]))
        : {},
  }
}
