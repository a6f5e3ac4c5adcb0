/** Random numbers that are equal for equal seeds: sfc32, seeded by SHA-256. */
import { createHash } from 'node:crypto'

export interface Seeded {
  /** A whole number from 0 to below `limit`. */
  below(limit: number): number
  /** True in `share` of all cases, from 0 to 1. */
  chance(share: number): boolean
  /** @throws Error for an empty list. */
  oneOf<Item>(items: readonly Item[]): Item
  /** Fills a view with bytes and returns it. */
  fill<View extends ArrayBufferView>(view: View): View
}

export function seededBy(seed: string): Seeded {
  const digest = createHash('sha256').update(seed).digest()
  let [a, b, c, d] = [0, 8, 16, 24].map((at) => digest.readUInt32LE(at)) as [number, number, number, number]
  const next = () => {
    const sum = (((a + b) | 0) + d) | 0
    d = (d + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return sum >>> 0
  }
  for (let round = 0; round < 20; round += 1) next()
  const below = (limit: number) => Math.floor((next() / 2 ** 32) * limit)
  return {
    below,
    chance: (share) => next() / 2 ** 32 < share,
    oneOf: (items) => {
      const item = items[below(items.length)]
      if (item === undefined) throw new Error('a choice from an empty list')
      return item
    },
    fill: (view) => {
      const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
      for (let at = 0; at < bytes.length; at += 1) bytes[at] = next() & 255
      return view
    },
  }
}
