/**
 * Write-ahead log by relation and kind of record, from `pg_walinspect`. The relations must still exist, with the files they had.
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

/** The part of the log of one relation. @property bytes with the copies of whole pages, of which @property images is the size. */
export type WalLine = z.output<typeof lines>[number]

/** The place up to which the server's log is written. */
export async function readWalPosition(admin: pg.Client): Promise<string> {
  const { rows } = await admin.query('select pg_current_wal_insert_lsn()::text as position')
  return positionRow.parse(rows[0]).position
}

/** Reads what the server logged between two places, the largest first. A record without a page has no relation: it is a commit, mostly. */
export async function readWalByRelation(
  admin: pg.Client,
  from: string,
  to: string,
): Promise<readonly WalLine[]> {
  await admin.query('create extension if not exists pg_walinspect')
  // The log's own pages are read from disk.
  await admin.query('select pg_switch_wal()')
  const { rows } = await admin.query(
    `select coalesce(c.relname, '(none)') as relation, r.resource_manager || ' ' || r.record_type as record, count(*) as count,
      sum(r.record_length) as bytes, sum(r.fpi_length) as images
    from pg_get_wal_records_info($1, $2) r
      left join lateral (select (regexp_match(r.block_ref, 'rel \\d+/\\d+/(\\d+)'))[1]::oid as file) b on true
      left join pg_class c on pg_relation_filenode(c.oid) = b.file
    group by 1, 2 order by bytes desc`,
    [from, to],
  )
  return lines.parse(rows)
}
