import { beforeAll, describe, expect, it } from 'vitest'
import { testServerUrl } from '../engines.ts'
import { type Description, describeOnPglite, describeOnPostgres } from './describe-statements.ts'
import { readStatements } from './read-statements.ts'
import { type Kinds, readStatementCalls, type StatementCall } from './statement-calls.ts'

const statements = readStatements()
const calls = readStatementCalls()

/** Column types as both engines parse them. Types that are not here are not read. */
const readAs: Readonly<Record<string, string>> = {
  text: 'string',
  'text[]': 'string[]',
  boolean: 'boolean',
  integer: 'number',
  bigint: 'bigint',
  date: 'string',
  'timestamp with time zone': 'Date',
  bytea: 'Uint8Array',
}

/** Values that may be passed for a parameter. JSON is its text, and the numbers of an array are their digits. */
const passedAs: Readonly<Record<string, readonly string[]>> = {
  text: ['string'],
  'text[]': ['string[]'],
  boolean: ['boolean'],
  integer: ['number'],
  bigint: ['bigint', 'number'],
  'bigint[]': ['string[]'],
  xid8: ['string'],
  date: ['string'],
  'timestamp with time zone': ['Date'],
  bytea: ['Uint8Array'],
  json: ['string'],
  jsonb: ['string'],
}

/** A document is declared by its shape, or as Json or unknown. */
function isRead(type: string, kinds: Kinds): boolean {
  if (type !== 'json' && type !== 'jsonb') return kinds.size === 1 && kinds.has(readAs[type] ?? '')
  const known = ['string', 'number', 'boolean', 'string[]', 'json']
  return (kinds.has('json') || kinds.has('string[]')) && [...kinds].every((kind) => known.includes(kind))
}

function isPassed(type: string, kinds: Kinds): boolean {
  return [...kinds].every((kind) => passedAs[type]?.includes(kind))
}

function rowFaults({ columns }: Description, row: StatementCall['row']): string[] {
  if (row === undefined) return []
  const declared = row instanceof Map ? row : new Map(columns.map(({ name }) => [name, row]))
  const faults = columns.map(({ name, type }) => {
    const kinds = declared.get(name)
    if (kinds === undefined) return `${name} ${type} is not in the row type`
    return isRead(type, kinds) ? '' : `${name} ${type} is declared as ${[...kinds].join(' | ')}`
  })
  const missing = [...declared.keys()].filter((name) => !columns.some((column) => column.name === name))
  return [...faults, ...missing.map((name) => `${name} is in the row type alone`)].filter(Boolean)
}

function parameterFaults({ parameters }: Description, passed: readonly Kinds[]): string[] {
  if (parameters.length !== passed.length)
    return [`takes ${parameters.length} parameters and gets ${passed.length}`]
  return parameters.flatMap((type, index) => {
    const kinds = passed[index] ?? new Set()
    return isPassed(type, kinds) ? [] : [`$${index + 1} ${type} gets ${[...kinds].join(' | ')}`]
  })
}

describe('the raw statements', () => {
  it('are found in the source', () => {
    expect(statements.length).toBeGreaterThan(70)
  })

  it('have a unique name each', () => {
    const texts = new Map<string, Set<string>>()
    for (const { name, text } of statements) texts.set(name, (texts.get(name) ?? new Set()).add(text))
    expect([...texts].filter(([, known]) => known.size > 1).map(([name]) => name)).toEqual([])
  })

  it('are called, each by a call that names it', () => {
    expect(calls.filter(({ statement }) => statement === undefined)).toEqual([])
    const names = new Set(statements.map(({ name }) => name))
    expect(new Set(calls.map(({ statement }) => statement))).toEqual(names)
  })

  it('get parameters that the call spells out', () => {
    const computed = calls.filter(({ parameters }) => parameters === undefined)
    expect(computed).toEqual([])
  })
})

const engines = [
  { engine: 'PGlite', isMissing: false, describeAll: () => describeOnPglite(statements) },
  {
    engine: 'PostgreSQL',
    isMissing: testServerUrl === undefined,
    describeAll: () => describeOnPostgres(statements, testServerUrl ?? ''),
  },
]

for (const { engine, isMissing, describeAll } of engines)
  describe.skipIf(isMissing)(`the raw statements on ${engine}`, () => {
    let descriptions = new Map<string, Description>()
    beforeAll(async () => {
      descriptions = await describeAll()
    })
    const listFaults = (find: (description: Description, call: StatementCall) => readonly string[]) =>
      calls.flatMap((call) => {
        const description = descriptions.get(call.statement ?? '')
        if (description === undefined) return [`${call.place}: not described`]
        return find(description, call).map((fault) => `${call.place} ${call.statement}: ${fault}`)
      })

    it('have the parameters and columns of the snapshot', async () => {
      const lines = [...descriptions].map(([name, { parameters, columns }]) => {
        const answer = columns.map((column) => `${column.name} ${column.type}`)
        return `${name}(${parameters.join(', ')})${answer.length === 0 ? '' : ` → ${answer.join(', ')}`}`
      })
      await expect(`${lines.sort().join('\n')}\n`).toMatchFileSnapshot('statements.snapshot.txt')
    })

    it('answer the columns of the row types that their calls declare', () => {
      expect(listFaults((description, { row }) => rowFaults(description, row))).toEqual([])
    })

    it('take the parameters that their calls pass', () => {
      expect(
        listFaults((description, { parameters }) =>
          parameters === undefined ? [] : parameterFaults(description, parameters),
        ),
      ).toEqual([])
    })
  })
