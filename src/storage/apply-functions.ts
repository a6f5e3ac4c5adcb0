/**
 * Keeps database functions up to date: re-applies functions whose file has changed, all or none. Functions of a newer
 * program, and their records, are left alone.
 */
import { type Kysely, sql, type Transaction } from 'kysely'
import type { DatabaseFunction } from './functions.ts'
import type { Schema } from './schema.ts'

export interface ProgramFunctions {
  readonly functions: readonly DatabaseFunction[]
  readonly version: string
}

type Applied = Readonly<Record<'name' | 'hash' | 'head_hash' | 'version', string>>

/** Names of functions that this program would apply or drop; empty if a newer program has applied its own. */
export async function changedFunctions(
  kysely: Kysely<Schema>,
  { functions, version }: ProgramFunctions,
): Promise<readonly string[]> {
  const applied = await readApplied(kysely)
  if (newerVersion(applied, version) !== undefined) return []
  return [...findChanged(functions, applied), ...findRemoved(functions, applied)].map(({ name }) => name)
}

/**
 * Applies changed functions and drops removed ones. The caller holds the migration lock. @returns their names.
 * @throws Error when a newer program has applied its own, because a downgrade must be an explicit decision.
 */
export async function applyFunctions(
  kysely: Kysely<Schema>,
  { functions, version }: ProgramFunctions,
): Promise<readonly string[]> {
  const applied = await readApplied(kysely)
  const newer = newerVersion(applied, version)
  if (newer !== undefined)
    throw new Error(
      `The database has the functions of version ${newer}, but this is version ${version}. Run version ${newer} or newer; src/storage/sql/README.md describes how to downgrade.`,
    )
  const toApply = findChanged(functions, applied)
  const toDrop = findRemoved(functions, applied)
  if (toApply.length + toDrop.length === 0) return []
  await kysely.transaction().execute(async (transaction) => {
    for (const { name } of toDrop) {
      for (const signature of await readSignatures(transaction, name)) await drop(transaction, signature)
      await transaction.deleteFrom('schema_function').where('name', '=', name).execute()
    }
    for (const { name, headHash } of toApply) {
      if (applied.some((known) => known.name === name && known.head_hash === headHash)) continue
      // A trigger function has no arguments, so it can always be replaced in place; its triggers depend on it.
      for (const signature of await readSignatures(transaction, name))
        if (!signature.isTrigger) await drop(transaction, signature)
    }
    // Functions call each other: the first pass creates them all, the second checks their bodies.
    for (const check of ['off', 'on']) {
      await sql.raw(`set local check_function_bodies = ${check}`).execute(transaction)
      for (const { text } of toApply) await sql.raw(text).execute(transaction)
    }
    for (const { name, hash, headHash } of toApply) {
      const row = { hash, head_hash: headHash, version, applied_at: sql<Date>`now()` }
      await transaction
        .insertInto('schema_function')
        .values({ name, ...row })
        .onConflict((conflict) => conflict.column('name').doUpdateSet(row))
        .execute()
    }
  })
  return [...toApply, ...toDrop].map(({ name }) => name)
}

function readApplied(kysely: Kysely<Schema>): Promise<Applied[]> {
  return kysely.selectFrom('schema_function').select(['name', 'hash', 'head_hash', 'version']).execute()
}

function findChanged(
  functions: readonly DatabaseFunction[],
  applied: readonly Applied[],
): DatabaseFunction[] {
  const hashes = new Map(applied.map(({ name, hash }) => [name, hash]))
  return functions.filter(({ name, hash }) => hashes.get(name) !== hash)
}

function findRemoved(functions: readonly DatabaseFunction[], applied: readonly Applied[]): Applied[] {
  const names = new Set(functions.map(({ name }) => name))
  return applied.filter(({ name }) => !names.has(name))
}

function newerVersion(applied: readonly Applied[], version: string): string | undefined {
  return applied.map((row) => row.version).find((other) => compareVersions(other, version) > 0)
}

/** Compares versions such as `1.12.0`. @returns a positive number if the first is newer. */
function compareVersions(one: string, other: string): number {
  const numbers = (version: string) => version.split('.', 3).map((part) => Number.parseInt(part, 10) || 0)
  const others = numbers(other)
  return numbers(one).reduce((order, number, place) => order || number - (others[place] ?? 0), 0)
}

/** @property signature quoted name and argument types. */
interface Signature {
  readonly signature: string
  readonly isTrigger: boolean
}

/** Lists all overloads of a function. */
async function readSignatures(transaction: Transaction<Schema>, name: string): Promise<readonly Signature[]> {
  const { rows } = await sql<Signature>`
    select p.oid::regprocedure::text as signature, p.prorettype = 'trigger'::regtype as "isTrigger"
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname = current_schema() and p.proname = ${name}`.execute(transaction)
  return rows
}

async function drop(transaction: Transaction<Schema>, { signature }: Signature): Promise<void> {
  await sql.raw(`drop function ${signature}`).execute(transaction)
}
