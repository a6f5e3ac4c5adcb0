/** JSON documents of the fuzzer: including text that no serializer produces, and values known only at send time. */

/** Text that is inserted verbatim. */
const RAW = Symbol('raw')
/** A value from an earlier answer. */
const KNOWN = Symbol('known')

export type Part = Members | Special | string | number | boolean | null | readonly Part[]

export interface Members {
  readonly [name: string]: Part
}

type Special = { readonly [RAW]: string } | { readonly [KNOWN]: readonly [kind: string, pick: number] }

/** Sellers of the sandbox that answer at once. */
const SELLER = /\/sandbox\/sellers\/(weather|headlines)$/

/** Text written without quotes or escapes. */
export const raw = (text: string): Part => ({ [RAW]: text })

/** One of the ids of a kind (`tx`, `card`, …) from answers so far. */
export const buildKnown = (kind: string, pick: number): Part => ({ [KNOWN]: [kind, pick] })

/** Values from answers: ids by kind. */
export interface Memory {
  /** Picks a stored id. @param kind empty for any. */
  pick(kind: string, at: number): string
}

/** Values of all callers. Each has an account of its own, so that an id of another one is mostly unknown to it. */
export class Memories implements Memory {
  readonly #ids = new Map<string, string[]>()
  readonly #own = new Map<string, Memories>()

  /** Stores every id of an answer. @param caller name of the caller that received it */
  learn(value: unknown, caller: string): void {
    const own = this.#own.get(caller) ?? new Memories()
    this.#own.set(caller, own)
    for (const [kind, id] of idsIn(value)) {
      this.#keep(kind, id)
      own.#keep(kind, id)
    }
  }

  /** Forgets what a caller received, because its name stands for another account from now on. */
  forget(caller: string): void {
    this.#own.delete(caller)
  }

  /** The memory of a caller: three in four of its ids are its own, if it has any. */
  of(caller: string): Memory {
    return {
      pick: (kind, at) => {
        const own = at % 4 === 0 ? undefined : this.#own.get(caller)
        return own?.has(kind) === true ? own.pick(kind, Math.floor(at / 4)) : this.pick(kind, at)
      },
    }
  }

  has(kind: string): boolean {
    return kind === '' ? this.#ids.size > 0 : this.#ids.has(kind)
  }

  pick(kind: string, at: number): string {
    const kinds = [...this.#ids.keys()]
    const ids = this.#ids.get(kind === '' ? (kinds[at % kinds.length] ?? '') : kind) ?? []
    return ids[at % ids.length] ?? `${kind || 'acct'}_01jd0000000000000000000000`
  }

  #keep(kind: string, value: string): void {
    const kept = this.#ids.get(kind) ?? []
    // Recent ids are the most likely to be still valid.
    this.#ids.set(kind, [value, ...kept.filter((one) => one !== value)].slice(0, 200))
  }
}

function idsIn(value: unknown): readonly (readonly [kind: string, id: string])[] {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(idsIn)
  if (typeof value !== 'string') return []
  const kind = /^([a-z]+)_[a-z0-9]{26}$/.exec(value)?.[1]
  return [
    ...(kind === undefined ? [] : [[kind, value] as const]),
    ...(SELLER.test(value) ? [['seller', value] as const] : []),
  ]
}

export function write(part: Part, memory: Memory): string {
  if (typeof part !== 'object' || part === null) return JSON.stringify(part) ?? 'null'
  if (RAW in part) return String(part[RAW])
  if (KNOWN in part) return JSON.stringify(writePart(part, memory))
  if (isList(part)) return `[${part.map((item) => write(item, memory)).join(',')}]`
  return `{${Object.entries(part)
    .map(([name, member]) => `${JSON.stringify(name)}:${write(member, memory)}`)
    .join(',')}}`
}

/** A part's text in a query or a path. */
export function writePart(part: Part, memory: Memory): string {
  if (typeof part === 'string') return part
  if (typeof part === 'object' && part !== null && KNOWN in part) {
    // No other type uses this symbol.
    const [kind, pick] = part[KNOWN] as readonly [string, number]
    return memory.pick(kind, pick)
  }
  return write(part, memory)
}

export function isObject(part: Part): part is Members {
  return typeof part === 'object' && part !== null && !isList(part) && !(RAW in part) && !(KNOWN in part)
}

export function isList(part: Part): part is readonly Part[] {
  return Array.isArray(part)
}
