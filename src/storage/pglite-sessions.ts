/** PGlite's one session, for one caller at a time: whoever asks next waits until it is given back. */
import type { PGlite } from '@electric-sql/pglite'
import { changesRows, type SessionPool } from './session-pool.ts'

const INT8 = 20
const DATE = 1082

/** Columns whose JavaScript type the two engines would give differently. */
const parsers = { [INT8]: BigInt, [DATE]: (text: string) => text }

/** The sessions of this instance. `end` waits for those before it and closes the instance. */
export function sessionsOf(pglite: PGlite): SessionPool {
  let last = Promise.resolve()
  const takeTurn = async (): Promise<() => void> => {
    const before = last
    let done = () => {}
    last = new Promise((resolve) => {
      done = resolve
    })
    await before
    return done
  }
  return {
    acquire: async () => {
      const done = await takeTurn()
      return {
        query: async <Row>(text: string, parameters: readonly unknown[]) => {
          const result =
            parameters.length === 0
              ? (await pglite.exec(text, { parsers })).at(-1)
              : await pglite.query(text, [...parameters], { parsers })
          const command = result?.command ?? ''
          return {
            // Row is the caller's word for what its statement answers, as in the port; PGlite hands rows on unchecked.
            rows: (result?.rows ?? []) as Row[],
            command,
            affected: changesRows(command) ? BigInt(result?.rowCount ?? 0) : undefined,
          }
        },
        release: () => done(),
      }
    },
    end: async () => {
      const done = await takeTurn()
      try {
        if (!pglite.closed) await pglite.close()
      } finally {
        done()
      }
    },
  }
}
