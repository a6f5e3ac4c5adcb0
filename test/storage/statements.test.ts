import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { onBothEngines } from '../engines.ts'
import { readStatements } from './read-statements.ts'

const statements = readStatements()

describe('the raw statements', () => {
  it('are found in the source', () => {
    expect(statements.length).toBeGreaterThan(70)
  })

  it('have a unique name each', () => {
    const texts = new Map<string, Set<string>>()
    for (const { name, text } of statements) texts.set(name, (texts.get(name) ?? new Set()).add(text))
    expect([...texts].filter(([, known]) => known.size > 1).map(([name]) => name)).toEqual([])
  })
})

onBothEngines('the raw statements', (database) => {
  it('can be prepared by the database, with the parameter types of the snapshot', async () => {
    const lines: string[] = []
    for (const { file, name, text } of statements) {
      const types = await database()
        .kysely.connection()
        .execute(async (connection) => {
          await sql.raw(`prepare described as ${text}`).execute(connection)
          const { rows } = await sql<{ types: string }>`
            select array_to_string(parameter_types::text[], ', ') as types
            from pg_prepared_statements where name = 'described'`.execute(connection)
          await sql.raw('deallocate described').execute(connection)
          return rows[0]?.types ?? ''
        })
        .catch((cause: unknown) => {
          throw new Error(`${file}: ${name} cannot be prepared`, { cause })
        })
      const numbers = [...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number))
      expect([name, types === '' ? 0 : types.split(', ').length]).toEqual([name, Math.max(0, ...numbers)])
      lines.push(`${name}(${types})`)
    }
    await expect(`${[...new Set(lines)].sort().join('\n')}\n`).toMatchFileSnapshot('statements.snapshot.txt')
  })
})
