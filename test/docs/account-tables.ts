/**
 * The list in docs/capacity.md of tables by the place of their account, from the snapshot of the schema.
 * `npx tsx test/docs/account-tables.ts` writes it.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

export const CAPACITY_FILE = 'docs/capacity.md'
const SCHEMA_FILE = 'test/storage/schema.snapshot.txt'
const [BEGIN, END] = ['<!-- tables: begin -->', '<!-- tables: end -->']

interface Table {
  readonly name: string
  readonly columns: readonly string[]
  /** Empty without one. */
  readonly key: readonly string[]
  /** Tables that it refers to. */
  readonly references: readonly string[]
}

/** Reads tables from the snapshot that a test compares with both engines. */
export function readTables(text: string): readonly Table[] {
  return text
    .split(/^(?=table |relation |function )/m)
    .filter((part) => part.startsWith('table '))
    .map((part) => {
      const lines = part.split('\n')
      const [, key = ''] = /^ {2}constraint \S+ PRIMARY KEY \(([^)]*)\)/m.exec(part) ?? []
      return {
        name: /^table (\w+)/.exec(part)?.[1] ?? '',
        columns: lines.flatMap((line) => /^ {2}(?!constraint\b)([a-z_0-9]+) /.exec(line)?.[1] ?? []),
        key: key === '' ? [] : key.split(', '),
        references: [...part.matchAll(/FOREIGN KEY \([^)]*\) REFERENCES (\w+)/g)].map(
          ([, name = '']) => name,
        ),
      }
    })
}

const title = {
  first:
    '`account_id` (in `account` its `id`) comes first in the primary key: a row is at home with its account as it is',
  column: '`account_id` is a column, but not first in the primary key: that key would have to begin with it',
  reference: 'no `account_id`, but a foreign key to a table that leads to one: it would get the column',
  none: 'neither: held by a name of its own kind, or by the deployment as a whole',
} as const

/** Sorts every table into one group. */
export function groupTables(
  tables: readonly Table[],
): Readonly<Record<keyof typeof title, readonly string[]>> {
  const byName = new Map(tables.map((table) => [table.name, table]))
  const leads = (name: string, seen: readonly string[]): boolean => {
    const table = byName.get(name)
    if (table === undefined || seen.includes(name)) return false
    return (
      name === 'account' ||
      table.columns.includes('account_id') ||
      table.references.some((other) => leads(other, [...seen, name]))
    )
  }
  const groupOf = (table: Table): keyof typeof title => {
    if (table.key[0] === 'account_id' || table.name === 'account') return 'first'
    if (table.columns.includes('account_id')) return 'column'
    return leads(table.name, []) ? 'reference' : 'none'
  }
  const select = (group: keyof typeof title) =>
    tables.filter((table) => groupOf(table) === group).map(({ name }) => name)
  return {
    first: select('first'),
    column: select('column'),
    reference: select('reference'),
    none: select('none'),
  }
}

/** @returns the page with the list of the schema in place of its own. */
export function withTables(): string {
  const page = readFileSync(CAPACITY_FILE, 'utf8')
  const groups = groupTables(readTables(readFileSync(SCHEMA_FILE, 'utf8')))
  const list = Object.entries(title).map(([group, text]) => {
    const names = Object.entries(groups).find(([name]) => name === group)?.[1] ?? []
    return `**${names.length}: ${text}.** ${names.map((name) => `\`${name}\``).join(', ')}`
  })
  const [before = '', rest = ''] = page.split(BEGIN)
  const [, after = ''] = rest.split(END)
  return `${before}${BEGIN}\n\n${list.join('\n\n')}\n\n${END}${after}`
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href)
  writeFileSync(CAPACITY_FILE, withTables())
