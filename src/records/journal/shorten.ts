/** Shortens states for the journal: what changed, in bounded space. The hash of a whole state proves it to whoever has it. */
import { createHash } from 'node:crypto'
import { canonicalJson, type Json } from '../../core/base/json.ts'

/** States that together need no more are kept whole. */
const WHOLE_BYTES = 1_024

/** Space for each of the two states: with the blanks that the database writes, an entry stays below 10 KB. */
const STATE_BYTES = 3_000

/** Longest unchanged text that stays beside what changed. */
const SHORT_LENGTH = 100

interface States {
  readonly before: Json
  readonly after: Json
}

/** @property beforeHash SHA-256 of the whole state, hex; absent where the states are whole. */
export interface KeptStates extends States {
  readonly beforeHash?: string | undefined
  readonly afterHash?: string | undefined
}

/** Keeps small states whole; of others the difference and the hashes. */
export function shorten(states: States): KeptStates {
  if (countBytes(states.before) + countBytes(states.after) <= WHOLE_BYTES) return states
  const { before, after } = difference(states)
  return { before: cutTo(before, STATE_BYTES), after: cutTo(after, STATE_BYTES), ...hashStates(states) }
}

/** Keeps hashes only. */
export function withoutDetails(states: States): KeptStates {
  return { before: null, after: null, ...hashStates(states) }
}

export function countBytes(value: Json): number {
  return value === null ? 0 : Buffer.byteLength(JSON.stringify(value))
}

function hashStates({ before, after }: States): Pick<KeptStates, 'beforeHash' | 'afterHash'> {
  return {
    ...(before === null ? {} : { beforeHash: stateHash(before) }),
    ...(after === null ? {} : { afterHash: stateHash(after) }),
  }
}

function stateHash(state: Json): string {
  return createHash('sha256').update(canonicalJson(state)).digest('hex')
}

/** Leaves out unchanged objects, lists and long texts, and the entries that two lists share. */
function difference({ before, after }: States): States {
  if (Array.isArray(before) && Array.isArray(after)) {
    const [old, current] = [before.map(canonicalJson), after.map(canonicalJson)].map(
      (texts) => new Set(texts),
    )
    return {
      before: before.filter((entry) => current?.has(canonicalJson(entry)) !== true),
      after: after.filter((entry) => old?.has(canonicalJson(entry)) !== true),
    }
  }
  if (!isObject(before) || !isObject(after)) return { before, after }
  const members = [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) => {
    const [one, other] = [before[name], after[name]]
    if (one !== undefined && other !== undefined && canonicalJson(one) === canonicalJson(other))
      return isShort(one) ? [[name, { before: one, after: other }] as const] : []
    if (one === undefined || other === undefined) return [[name, { before: one, after: other }] as const]
    return [[name, difference({ before: one, after: other })] as const]
  })
  const side = (which: 'before' | 'after') =>
    Object.fromEntries(
      members.flatMap(([name, { [which]: value }]) => (value === undefined ? [] : [[name, value]])),
    )
  return { before: side('before'), after: side('after') }
}

/** Cuts a value to a size: the smallest members of an object and the first of a list stay whole. */
function cutTo(value: Json, bytes: number): Json {
  if (countBytes(value) <= bytes) return value
  if (typeof value === 'string') return `${cut(value, bytes - '"…"'.length - 2)}…`
  if (Array.isArray(value)) return cutList(value, bytes)
  return isObject(value) ? cutObject(value, bytes) : null
}

const OMITTED_BYTES = 60

function cutList(list: readonly Json[], bytes: number): Json {
  let left = bytes - OMITTED_BYTES
  const kept: Json[] = []
  for (const entry of list) {
    left -= countBytes(entry) + ','.length
    if (left < 0) break
    kept.push(entry)
  }
  return [...kept, `… and ${list.length - kept.length} more`]
}

function cutObject(value: Readonly<Record<string, Json>>, bytes: number): Json {
  const members = Object.entries(value).toSorted(([, one], [, other]) => countBytes(one) - countBytes(other))
  let left = bytes - OMITTED_BYTES
  const kept: [string, Json][] = []
  for (const [at, [name, member]] of members.entries()) {
    const share = Math.floor(left / (members.length - at)) - countBytes(name) - ':,'.length
    if (share < OMITTED_BYTES && countBytes(member) > share) continue
    const fitted = cutTo(member, share)
    kept.push([name, fitted])
    left -= countBytes(name) + countBytes(fitted) + ':,'.length
  }
  const omitted = members.length - kept.length
  return Object.fromEntries(omitted === 0 ? kept : [...kept, ['…', `${omitted} more`]])
}

/** The first characters of a text whose JSON needs no more bytes. */
function cut(text: string, bytes: number): string {
  let left = bytes
  let kept = ''
  for (const character of text) {
    left -= countBytes(character) - '""'.length
    if (left < 0) break
    kept += character
  }
  return kept
}

function isShort(value: Json): boolean {
  return typeof value === 'string'
    ? value.length <= SHORT_LENGTH
    : typeof value !== 'object' || value === null
}

function isObject(
  value: Json | undefined,
): value is Readonly<Record<string, Json>> & { [name: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
