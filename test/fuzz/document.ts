/** JSON as the fuzzer writes it: also what no serializer would, and what is only known when it is sent. */

/** A text that stands in the document as it is. */
const RAW = Symbol('raw')
/** A value that an earlier answer held. */
const KNOWN = Symbol('known')

/** Something to write. */
export type Part = Members | Special | string | number | boolean | null | readonly Part[]

/** An object of a document. */
export interface Members {
  readonly [name: string]: Part
}

type Special = { readonly [RAW]: string } | { readonly [KNOWN]: readonly [kind: string, pick: number] }

/** A text that is written without quotes or escapes. */
export const raw = (text: string): Part => ({ [RAW]: text })

/** One of the ids of a kind (`tx`, `card`, …) that answers have held so far. */
export const known = (kind: string, pick: number): Part => ({ [KNOWN]: [kind, pick] })

/** What answers have held: ids by their kind, and codes by the name of their member. */
export class Memory {
  readonly #ids = new Map<string, string[]>()

  /** Keeps every id of an answer. */
  learn(value: unknown): void {
    if (typeof value === 'string') {
      const kind = /^([a-z]+)_[a-z0-9]{26}$/.exec(value)?.[1]
      if (kind !== undefined) this.#keep(kind, value)
    } else if (typeof value === 'object' && value !== null)
      for (const member of Object.values(value)) this.learn(member)
  }

  #keep(kind: string, value: string): void {
    const kept = this.#ids.get(kind) ?? []
    // What is new is the likeliest to be still of use.
    this.#ids.set(kind, [value, ...kept.filter((one) => one !== value)].slice(0, 200))
  }

  /** @param kind empty: any. */
  pick(kind: string, at: number): string {
    const kinds = [...this.#ids.keys()]
    const ids = this.#ids.get(kind === '' ? (kinds[at % kinds.length] ?? '') : kind) ?? []
    return ids[at % ids.length] ?? `${kind || 'acct'}_01jd0000000000000000000000`
  }
}

/** The text of a document. */
export function write(part: Part, memory: Memory): string {
  if (typeof part !== 'object' || part === null) return JSON.stringify(part) ?? 'null'
  if (RAW in part) return String(part[RAW])
  if (KNOWN in part) return JSON.stringify(textOf(part, memory))
  if (isList(part)) return `[${part.map((item) => write(item, memory)).join(',')}]`
  return `{${Object.entries(part)
    .map(([name, member]) => `${JSON.stringify(name)}:${write(member, memory)}`)
    .join(',')}}`
}

/** A part as it stands in a query or a path. */
export function textOf(part: Part, memory: Memory): string {
  if (typeof part === 'string') return part
  if (typeof part === 'object' && part !== null && KNOWN in part) {
    // The only thing that is kept under this symbol.
    const [kind, pick] = part[KNOWN] as readonly [string, number]
    return memory.pick(kind, pick)
  }
  return write(part, memory)
}

/** Whether a part has members to change. */
export function isObject(part: Part): part is Members {
  return typeof part === 'object' && part !== null && !isList(part) && !(RAW in part) && !(KNOWN in part)
}

/** Whether a part is a list. */
export function isList(part: Part): part is readonly Part[] {
  return Array.isArray(part)
}
