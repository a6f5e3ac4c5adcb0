/**
 * Write-ahead log by relation, from `pg_walinspect`. The database and its relations must still be there, with the files they had.
 * `npx tsx test/bench/round-trips.ts wal` prints it for transfers.
 */
import type pg from 'pg'
import { z } from 'zod'

const positionRow = z.object({ position: z.string() })
const lines = z.array(
  z.object({
    relation: z.string(),
    record: z.string(),
    count: z.coerce.number(),
    bytes: z.coerce.number(),
    images: z.coerce.number(),
  }),
)

/** One kind of record of a relation. @property bytes with copies of whole pages, whose bytes are @property images. */
export type WalLine = z.output<typeof lines>[number]

/** Prepares the reads, which the log would tell of, too. */
export async function openWal(admin: pg.Client): Promise<void> {
  await admin.query('create extension if not exists pg_walinspect')
}

/** Reads the place up to which the server's log is written, and has it flushed. */
export async function readWalPosition(admin: pg.Client): Promise<string> {
  await admin.query('select pg_switch_wal()')
  const { rows } = await admin.query('select pg_current_wal_flush_lsn()::text as position')
  return positionRow.parse(rows[0]).position
}

/** Reads what the server logged between two places, the largest first. Records without a page are of no relation: commits, mostly. */
export async function readWalByRelation(
  admin: pg.Client,
  from: string,
  to: string,
): Promise<readonly WalLine[]> {
  const { rows } = await admin.query(
    `select coalesce(c.relname, '(none)') as relation, r.resource_manager || ' ' || r.record_type as record, count(*) as count,
      sum(r.record_length) as bytes, sum(r.fpi_length) as images
    from pg_get_wal_records_info($1, $2) r
      left join lateral (select (regexp_match(r.block_ref, 'rel \\d+/\\d+/(\\d+)'))[1]::oid as file) b on true
      left join pg_class c on pg_relation_filenode(c.oid) = b.file
    where r.resource_manager || r.record_type <> 'XLOGSWITCH'
    group by 1, 2 order by bytes desc`,
    [from, to],
  )
  return lines.parse(rows)
}

/** One line for each relation, with its kinds of records. @param operations among which the bytes are shared. */
export function walText(lines: readonly WalLine[], operations: number): string {
  const relations = new Map<string, WalLine[]>()
  for (const line of lines) relations.set(line.relation, [...(relations.get(line.relation) ?? []), line])
  const sum = (parts: readonly WalLine[]) => parts.reduce((total, { bytes }) => total + bytes, 0)
  const share = (bytes: number) => (bytes / operations).toFixed(0)
  return [...relations]
    .sort(([, one], [, other]) => sum(other) - sum(one))
    .map(([relation, parts]) => {
      const kinds = parts.map(
        ({ record, count, bytes, images }) =>
          `${share(bytes)} ${record} ×${(count / operations).toFixed(2)}${images > 0 ? ` (${share(images)} of pages)` : ''}`,
      )
      return `${share(sum(parts)).padStart(7)} B ${relation}: ${kinds.join(', ')}`
    })
    .join('\n')
}
