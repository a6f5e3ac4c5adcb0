/**
 * The schema of a database as text, from its catalogue: equal for every engine and server version with the same schema.
 * A function is represented by the hash of its body without comments and whitespace.
 */
import { createHash } from 'node:crypto'
import type { Database } from '../../src/storage/database.ts'

/** Tables created by the migrator. */
const BOOKKEEPING = ['kysely_migration', 'kysely_migration_lock']

const relations = {
  name: 'dump-relations',
  text: `
    select c.oid::text as oid, c.relname as name, case c.relkind when 'p' then 'r' else c.relkind end::text as kind,
      concat_ws(' ', case c.relpersistence when 'u' then 'unlogged' end, array_to_string(c.reloptions, ', '),
        'partitioned by ' || pg_get_partkeydef(c.oid)) as options
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = current_schema() and c.relkind not in ('i', 'I', 't', 'c') and c.relname <> all ($1) and not c.relispartition
    order by 3, c.relname collate "C"`,
}

const columns = {
  name: 'dump-columns',
  text: `
    select concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod),
      case when a.attcollation <> t.typcollation then 'collate ' || quote_ident(l.collname) end,
      case when a.attnotnull then 'not null' end, 'default ' || pg_get_expr(d.adbin, d.adrelid)) as line
    from pg_attribute a
    join pg_type t on t.oid = a.atttypid
    left join pg_collation l on l.oid = a.attcollation
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = $1::oid and a.attnum > 0 and not a.attisdropped
    order by a.attnum`,
}

// Newer servers also store "not null" as a constraint; the columns state it already.
const constraints = {
  name: 'dump-constraints',
  text: `
    select 'constraint ' || conname || ' ' || pg_get_constraintdef(oid) as line
    from pg_constraint where conrelid = $1::oid and contype <> 'n' order by conname collate "C"`,
}

const indexes = {
  name: 'dump-indexes',
  text: `
    select pg_get_indexdef(indexrelid) as line from pg_index where indrelid = $1::oid
    order by pg_get_indexdef(indexrelid) collate "C"`,
}

const triggers = {
  name: 'dump-triggers',
  text: `
    select pg_get_triggerdef(oid) as line from pg_trigger where tgrelid = $1::oid and not tgisinternal
    order by tgname collate "C"`,
}

const functions = {
  name: 'dump-functions',
  text: `
    select p.proname || '(' || pg_get_function_arguments(p.oid) || ')' as signature,
      concat_ws(' ', 'returns', coalesce(pg_get_function_result(p.oid), 'nothing'), 'language', l.lanname,
        case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end,
        case when p.proisstrict then 'strict' end, case when p.prosecdef then 'security definer' end,
        'parallel ' || p.proparallel::text, array_to_string(p.proconfig, ', ')) as traits,
      p.prosrc as body
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
    where n.nspname = current_schema()
    order by p.proname collate "C", pg_get_function_arguments(p.oid) collate "C"`,
}

/** The dump: tables with their columns in order, constraints, indexes and triggers; then functions. */
export async function dumpSchema(database: Database): Promise<string> {
  const found = await database.call<{ oid: string; name: string; kind: string; options: string }>(relations, [
    BOOKKEEPING,
  ])
  const lines: string[] = []
  for (const { oid, name, kind, options } of found) {
    lines.push([kind === 'r' ? 'table' : `relation of kind ${kind}:`, name, options].join(' ').trimEnd())
    for (const part of [columns, constraints, indexes, triggers])
      for (const { line } of await database.call<{ line: string }>(part, [oid])) lines.push(`  ${line}`)
    lines.push('')
  }
  const routines = await database.call<{ signature: string; traits: string; body: string }>(functions, [])
  for (const { signature, traits, body } of routines)
    lines.push(`function ${signature}`, `  ${traits}`, `  body ${bodyHash(body)}`, '')
  return lines.join('\n')
}

function bodyHash(body: string): string {
  const code = body.replace(/'(?:[^']|'')*'|--[^\n]*|\/\*[\s\S]*?\*\/|\s+/g, (part) =>
    part.startsWith("'") ? part : '',
  )
  return createHash('sha256').update(code).digest('hex').slice(0, 16)
}
