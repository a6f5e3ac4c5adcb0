/** Statements on a JSON array, so that calls at the same time share a round trip and a commit. */
import { createBatches } from '../core/base/batches.ts'
import type { Connection, Database, Gathered, Statement } from './database.ts'

/** One batch that waits for a lock leaves the other. More make the batches smaller. */
const LANES = 2

/** Runs a statement on a JSON array and returns its rows, one for each element, in their order. */
type RunBatch = (statement: Statement, elements: string) => Promise<unknown[]>

interface Call {
  readonly element: string
  readonly line: string
}

/** Gathers calls outside transactions. @param run runs a batch in its own transaction. */
export function createGathering(engine: Database['engine'], run: RunBatch): Connection['gather'] {
  const gathered = new Map<string, (call: Call) => Promise<unknown>>()
  let calls = 0
  return async <Row>(statement: Statement, element: Gathered, line?: string) => {
    const batches =
      gathered.get(statement.name) ??
      createBatches<Call, unknown>({
        concurrent: engine === 'pglite' ? 1 : (statement.lanes ?? LANES),
        isBlocking: engine === 'pglite',
        lineOf: (call) => call.line,
        send: (batch) => run(statement, `[${batch.map((call) => call.element).join()}]`),
      })
    gathered.set(statement.name, batches)
    calls += 1
    // The caller declares the row type of its statement.
    return (await batches({ element: toText(element), line: line ?? `\n${calls}` })) as Row
  }
}

/** Runs calls one by one, inside a transaction. */
export function gatherAlone(run: RunBatch): Connection['gather'] {
  let last: Promise<unknown> = Promise.resolve()
  return <Row>(statement: Statement, element: Gathered) => {
    const answer = last.then(async () => {
      const [row] = await run(statement, `[${toText(element)}]`)
      if (row === undefined) throw new Error(`${statement.name} returned no row`)
      return row as Row
    })
    last = answer.catch(() => {})
    return answer
  }
}

function toText(element: Gathered): string {
  return JSON.stringify(element, (_name, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  )
}
