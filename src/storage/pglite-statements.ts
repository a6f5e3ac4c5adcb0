/**
 * Statements of PGlite that are parsed and planned once. Its own `query` parses each call anew and enters the engine six
 * times; a prepared statement is bound and executed in one entry. @see https://www.postgresql.org/docs/current/protocol-flow.html
 */
import { messages, type PGlite, parse, protocol, type Results } from '@electric-sql/pglite'
import { LRUCache } from 'lru-cache'

/** Plans take memory of the engine. */
const MAX_STATEMENTS = 500

const { serialize } = protocol

/** Object id of the type. */
const BYTEA = 17

interface Prepared {
  readonly name: string
  /** Types of the parameters. */
  readonly types: readonly number[]
  /** Describes the rows; undefined if there are none. A statement whose rows would change is refused with 0A000. */
  readonly rows: Answer | undefined
}

type Answer = Awaited<ReturnType<PGlite['execProtocolStream']>>[number]

/**
 * Runs one statement with parameters, one call after the other. @param parsers of all types: merging a few into the
 * engine's hundreds for each call took longer than parsing its rows.
 */
export function createStatements(
  pglite: PGlite,
  parsers: Readonly<Record<number, (text: string) => unknown>>,
) {
  const closing: Uint8Array[] = []
  const prepared = new LRUCache<string, Prepared>({
    max: MAX_STATEMENTS,
    dispose: ({ name }) => closing.push(serialize.close({ type: 'S', name })),
  })
  let count = 0
  const prepare = async (text: string): Promise<Prepared> => {
    count += 1
    const name = `s${count}`
    const answers = await pglite.execProtocolStream(
      joinParts([serialize.parse({ name, text }), serialize.describe({ type: 'S', name }), serialize.sync()]),
      { syncToFs: false },
    )
    const rows = answers.find((answer) => answer.name === 'rowDescription')
    const statement = { name, types: parse.parseDescribeStatementResults(answers), rows }
    prepared.set(text, statement)
    return statement
  }
  const execute = async (text: string, parameters: readonly unknown[]): Promise<Results | undefined> => {
    const { name, types, rows } = prepared.get(text) ?? (await prepare(text))
    const values = parameters.map((value, index) => {
      if (value === null || value === undefined) return null
      // As bytes: writing long ones as text takes most of their time.
      if (types[index] === BYTEA && value instanceof Uint8Array) return value
      const ofType = pglite.serializers[types[index] ?? 0]
      return ofType === undefined ? String(value) : ofType(value)
    })
    try {
      const answers = await pglite.execProtocolStream(
        joinParts([
          ...closing.splice(0),
          serialize.bind({ statement: name, values }),
          serialize.execute({}),
          serialize.sync(),
        ]),
      )
      return parse.parseResults(rows === undefined ? answers : [rows, ...answers], parsers)[0]
    } catch (error) {
      // A plan of before a migration may not fit the tables any more: the next call prepares the statement again.
      if (error instanceof messages.DatabaseError && error.code === '0A000') prepared.delete(text)
      throw error
    }
  }
  return (text: string, parameters: readonly unknown[]) =>
    pglite.runExclusive(() => execute(text, parameters))
}

function joinParts(parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts)
}
