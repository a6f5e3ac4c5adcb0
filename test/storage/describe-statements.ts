/** Describes statements on both engines, without executing them. */
import pg from 'pg'
import type { Statement } from '../../src/storage/database.ts'
import { openInMemory } from '../../src/storage/pglite.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createEmptyDatabase } from '../engines.ts'

/** An engine's description of a statement: parameter types and columns, with the catalogue's type names. */
export interface Description {
  readonly parameters: readonly string[]
  readonly columns: readonly { readonly name: string; readonly type: string }[]
}

/** Types by their object ids. */
interface Described {
  readonly parameters: readonly number[]
  readonly columns: readonly { readonly name: string; readonly dataTypeID: number }[]
}

const TYPE_NAMES = 'select oid::int4 as oid, format_type(oid, null) as name from pg_type'

/** By name, on a migrated PGlite. */
export async function describeOnPglite(statements: readonly Statement[]): Promise<Map<string, Description>> {
  const { pglite } = await openInMemory()
  try {
    const { rows } = await pglite.query<{ oid: number; name: string }>(TYPE_NAMES)
    return await describeAll(statements, rows, async (text) => {
      const { queryParams, resultFields } = await pglite.describeQuery(text)
      return { parameters: queryParams.map(({ dataTypeID }) => dataTypeID), columns: resultFields }
    })
  } finally {
    await pglite.close()
  }
}

/** By name, in a migrated database of its own on a PostgreSQL server. */
export async function describeOnPostgres(
  statements: readonly Statement[],
  serverUrl: string,
): Promise<Map<string, Description>> {
  const { url, drop } = await createEmptyDatabase(serverUrl)
  const database = await openPostgres({ url })
  await database.migrate()
  await database.close()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ oid: number; name: string }>(TYPE_NAMES)
    return await describeAll(statements, rows, (text) => describeOn(client, text))
  } finally {
    await client.end()
    await drop()
  }
}

async function describeAll(
  statements: readonly Statement[],
  types: readonly { oid: number; name: string }[],
  describe: (text: string) => Promise<Described>,
): Promise<Map<string, Description>> {
  const names = new Map(types.map(({ oid, name }) => [oid, name]))
  const nameType = (oid: number) => names.get(oid) ?? `type ${oid}`
  const descriptions = new Map<string, Description>()
  for (const { name, text } of statements) {
    const { parameters, columns } = await describe(text).catch((cause: unknown) => {
      throw new Error(`${name} cannot be prepared`, { cause })
    })
    descriptions.set(name, {
      parameters: parameters.map(nameType),
      columns: columns.map((column) => ({ name: column.name, type: nameType(column.dataTypeID) })),
    })
  }
  return descriptions
}

/** Parse, Describe and Sync, but neither Bind nor Execute. @see https://www.postgresql.org/docs/current/protocol-flow.html */
function describeOn(client: pg.Client, text: string): Promise<Described> {
  return new Promise((resolve, reject) => {
    let parameters: readonly number[] = []
    let columns: Described['columns'] = []
    const noteParameters = ({ dataTypeIDs }: { dataTypeIDs: readonly number[] }) => {
      parameters = dataTypeIDs
    }
    // The members beside `submit` are what the client calls on its active query.
    const request = {
      submit: (connection: pg.Connection) => {
        connection.once('parameterDescription', noteParameters)
        connection.parse({ name: '', text, types: [] }, true)
        connection.describe({ type: 'S', name: '' }, true)
        connection.sync()
      },
      handleRowDescription: ({ fields }: { fields: Described['columns'] }) => {
        columns = fields
      },
      handleError: (error: Error, connection: pg.Connection) => {
        connection.removeListener('parameterDescription', noteParameters)
        reject(error)
      },
      handleReadyForQuery: () => resolve({ parameters, columns }),
    }
    client.query(request)
  })
}
