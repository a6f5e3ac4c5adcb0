/** Crashes between two statements. */
import type { Services } from '../../../src/kernel/context.ts'

/** A database whose named statement kills the process. */
export function failingAt(database: Services['database'], name: string): Services['database'] {
  return {
    ...database,
    call: async (statement, values) => {
      if (statement.name === name) throw new Error('the process died')
      return database.call(statement, values)
    },
    transaction: (work) =>
      database.transaction((connection) =>
        work({
          ...connection,
          call: async (statement, values) => {
            if (statement.name === name) throw new Error('the process died')
            return connection.call(statement, values)
          },
        }),
      ),
  }
}
