/** Random choices that a seed repeats: sfc32. @see https://pracrand.sourceforge.net/RNG_engines.txt */

export interface Seeded {
  /** True with this probability. */
  readonly happens: (probability: number) => boolean
  /** @throws Error if there is nothing to choose from. */
  readonly choose: <Item>(items: readonly Item[]) => Item
}

/** Rounds after which the state has mixed in every bit of a small seed. */
const MIXING_ROUNDS = 15

export function createSeeded(seed: number): Seeded {
  let [a, b, c, counter] = [0, seed | 0, 0, 1]
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return (sum >>> 0) / 2 ** 32
  }
  for (let round = 0; round < MIXING_ROUNDS; round += 1) next()
  return {
    happens: (probability) => next() < probability,
    choose: (items) => {
      const item = items[Math.floor(next() * items.length)]
      if (item === undefined) throw new Error('there is nothing to choose from')
      return item
    },
  }
}
