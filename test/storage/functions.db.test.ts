import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { VERSION } from '../../src/core/base/version.ts'
import { applyFunctions, changedFunctions } from '../../src/storage/apply-functions.ts'
import { type DatabaseFunction, functions, readFunction } from '../../src/storage/functions.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { createEmptyDatabase, onBothEngines, testServerUrl } from '../engines.ts'

const shipped = { functions, version: VERSION }
const NEWER = '999.0.0'

/** A program of this version with one additional function. */
const programWith = (extra: DatabaseFunction, version = VERSION) => ({
  functions: [...functions, extra],
  version,
})

const answer = (value: string) =>
  readFunction(
    'answer_test',
    `create or replace function answer_test() returns text language sql as $$ select '${value}' $$;`,
  )

onBothEngines('the functions', (database) => {
  const answerNow = async () => {
    const { rows } = await sql<{ answer: string }>`select answer_test() as answer`.execute(database().kysely)
    return rows[0]?.answer
  }
  const overloads = async (name: string) => {
    const { rows } = await sql<{ of: string }>`
      select pg_get_function_arguments(oid) as of from pg_proc where proname = ${name}`.execute(
      database().kysely,
    )
    return rows.map(({ of }) => of)
  }

  it('functions in the files are those of the database, and no others', async () => {
    const { rows } = await sql<{ name: string }>`
      select proname as name from pg_proc where pronamespace = current_schema()::regnamespace`.execute(
      database().kysely,
    )
    expect(rows.map(({ name }) => name).sort()).toEqual(functions.map(({ name }) => name).sort())
  })

  it('are applied again when their text changes, and only then', async () => {
    const { kysely } = database()
    expect(await applyFunctions(kysely, programWith(answer('one')))).toEqual(['answer_test'])
    expect(await applyFunctions(kysely, programWith(answer('one')))).toEqual([])
    expect(await changedFunctions(kysely, programWith(answer('two')))).toEqual(['answer_test'])
    expect(await answerNow()).toBe('one')
    expect(await applyFunctions(kysely, programWith(answer('two')))).toEqual(['answer_test'])
    expect(await answerNow()).toBe('two')
  })

  it('count as pending for readiness, and migrating applies them', async () => {
    const { kysely } = database()
    await applyFunctions(kysely, shipped)
    await kysely
      .updateTable('schema_function')
      .set({ hash: 'other' })
      .where('name', '=', 'spend_reserve')
      .execute()
    expect(await database().pendingMigrations()).toEqual(['function spend_reserve'])
    expect(await database().migrate()).toEqual(['function spend_reserve'])
    expect(await database().pendingMigrations()).toEqual([])
  })

  it('leave no overload behind when their signature changes', async () => {
    const { kysely } = database()
    await applyFunctions(kysely, programWith(answer('none')))
    const text = `create or replace function answer_test(p_units bigint, out total bigint) language sql as $$ select p_units $$;`
    await applyFunctions(kysely, programWith(readFunction('answer_test', text)))
    expect(await overloads('answer_test')).toEqual(['p_units bigint, OUT total bigint'])
    await applyFunctions(kysely, programWith(answer('none')))
    expect(await overloads('answer_test')).toEqual([''])
  })

  it('are dropped when their file is removed', async () => {
    const { kysely } = database()
    await applyFunctions(kysely, programWith(answer('gone')))
    expect(await database().pendingMigrations()).toEqual(['function answer_test'])
    expect(await database().migrate()).toEqual(['function answer_test'])
    expect(await overloads('answer_test')).toEqual([])
  })

  it('change all together or not at all', async () => {
    const { kysely } = database()
    const broken = readFunction(
      'answer_test',
      'create or replace function answer_test() returns text language sql as $$ select no_such_column from account $$;',
    )
    const program = {
      functions: functions.map((known) =>
        known.name === 'journal_head'
          ? readFunction('journal_head', `-- Another text.\n${known.text}`)
          : known,
      ),
      version: VERSION,
    }
    await expect(
      applyFunctions(kysely, { ...program, functions: [...program.functions, broken] }),
    ).rejects.toMatchObject({ code: '42703' })
    expect(await changedFunctions(kysely, program)).toEqual(['journal_head'])
    expect(await overloads('answer_test')).toEqual([])
  })

  it('functions of a newer program are kept by an older one, which logs it', async () => {
    const { kysely } = database()
    await applyFunctions(kysely, programWith(answer('new'), NEWER))
    try {
      expect(await database().pendingMigrations()).toEqual([])
      await expect(database().migrate()).rejects.toThrow(`the functions of version ${NEWER}`)
      expect(await answerNow()).toBe('new')
    } finally {
      // The downgrade that the README describes.
      await kysely.deleteFrom('schema_function').execute()
    }
    expect(await database().migrate()).toHaveLength(functions.length)
    expect(await database().pendingMigrations()).toEqual([])
  })
})

describe('the function files', () => {
  it.each(functions.map(({ name, text }) => [name, text]))(
    '%s describes its purpose, before its function',
    (_name, text) => {
      expect(text).toMatch(/^-- [A-Z]/)
      expect(text).not.toMatch(/^drop /m)
    },
  )

  it('must be named like their function', () => {
    expect(() => readFunction('one', answer('x').text)).toThrow('create or replace function one')
  })
})

describe.skipIf(testServerUrl === undefined)('functions on PostgreSQL', () => {
  it('can be replaced while another session uses the old ones', async () => {
    const { url, drop } = await createEmptyDatabase(testServerUrl ?? '')
    const [first, second] = [await openPostgres({ url, poolSize: 1 }), await openPostgres({ url })]
    try {
      await first.migrate()
      const head = { name: 'head', text: 'select (journal_head()).hash as hash' }
      expect(await first.call(head, [])).toEqual([{ hash: null }])
      await second.kysely.updateTable('schema_function').set({ hash: 'other', head_hash: 'other' }).execute()
      expect(await second.migrate()).toHaveLength(functions.length)
      expect(await first.call(head, [])).toEqual([{ hash: null }])
    } finally {
      await first.close()
      await second.close()
      await drop()
    }
  })
})
