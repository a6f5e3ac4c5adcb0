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
export const known = (kind: string, pick: number): Part => ({ [KNOWN]: [kind, pick] })

/** Values from answers: ids by kind, and codes by member name. */
export class Memory {
  readonly #ids = new Map<string, string[]>()

  /** Stores every id of an answer. */
  learn(value: unknown): void {
    if (typeof value === 'string') {
      const kind = /^([a-z]+)_[a-z0-9]{26}$/.exec(value)?.[1]
      if (kind !== undefined) this.#keep(kind, value)
      if (SELLER.test(value)) this.#keep('seller', value)
    } else if (typeof value === 'object' && value !== null)
      for (const member of Object.values(value)) this.learn(member)
  }

  #keep(kind: string, value: string): void {
    const kept = this.#ids.get(kind) ?? []
    // Recent ids are the most likely to be still valid.
    this.#ids.set(kind, [value, ...kept.filter((one) => one !== value)].slice(0, 200))
  }

  /** Picks a stored id. @param kind empty for any. */
  pick(kind: string, at: number): string {
    const kinds = [...this.#ids.keys()]
    const ids = this.#ids.get(kind === '' ? (kinds[at % kinds.length] ?? '') : kind) ?? []
    return ids[at % ids.length] ?? `${kind || 'acct'}_01jd0000000000000000000000`
  }
}

export function write(part: Part, memory: Memory): string {
  if (typeof part !== 'object' || part === null) return JSON.stringify(part) ?? 'null'
  if (RAW in part) return String(part[RAW])
  if (KNOWN in part) return JSON.stringify(textOf(part, memory))
  if (isList(part)) return `[${part.map((item) => write(item, memory)).join(',')}]`
  return `{${Object.entries(part)
    .map(([name, member]) => `${JSON.stringify(name)}:${write(member, memory)}`)
    .join(',')}}`
}

/** A part's text in a query or a path. */
export function textOf(part: Part, memory: Memory): string {
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
