import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { CAPACITY_FILE, groupTables, readTables, withTables } from './account-tables.ts'

describe('docs/capacity.md', () => {
  it('lists the tables of the schema by the place of their account', () => {
    const written = readFileSync(CAPACITY_FILE, 'utf8')
    expect(written).toContain('`decision`')
    expect(withTables(), 'out of date: npx tsx test/docs/account-tables.ts').toBe(written)
  })
})

describe('the groups of tables', () => {
  it('follow primary keys, columns and references', () => {
    const table = (name: string, columns: string[], key: string[], references: string[] = []) => ({
      ...{ name, columns, key, references },
    })
    expect(
      groupTables([
        table('account', ['id'], ['id']),
        table('limit', ['account_id', 'day'], ['account_id', 'day'], ['account']),
        table('payment', ['id', 'account_id'], ['id'], ['account']),
        table('part', ['id', 'payment_id'], ['id'], ['payment']),
        table('rate', ['day'], ['day']),
        table('own', ['id'], ['id'], ['own']),
      ]),
    ).toEqual({
      first: ['account', 'limit'],
      column: ['payment'],
      reference: ['part'],
      none: ['rate', 'own'],
    })
  })

  it('hold every table once', () => {
    const tables = readTables(readFileSync('test/storage/schema.snapshot.txt', 'utf8'))
    expect(tables.length).toBeGreaterThan(100)
    for (const { name, columns } of tables) expect([name, columns.length > 0]).toEqual([name, true])
    const { first, column, reference, none } = groupTables(tables)
    expect([...first, ...column, ...reference, ...none].toSorted()).toEqual(
      tables.map(({ name }) => name).toSorted(),
    )
  })
})
