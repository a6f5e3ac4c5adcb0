/**
 * The journal: changes by people and administrators, each written in the transaction of the change. A change is rare, so entries
 * are numbered and chained as they are written, one transaction after the other.
 *
 * Locks: the journal's advisory lock is taken last in a transaction, after every lock of 0005-budgets, and nothing is waited for
 * under it.
 */
export const journal = `
create table journal_entry (
  sequence bigint primary key check (sequence > 0),
  id text collate "C" not null unique,
  -- The account that reads it: the one that was changed, or the administrator's own.
  account_id text not null references account,
  at timestamptz not null,
  actor_kind text not null check (actor_kind in ('person', 'admin', 'key', 'system')),
  actor_id text,
  action text not null,
  object_kind text not null,
  object_id text not null,
  before jsonb,
  after jsonb,
  previous text not null check (previous ~ '^[0-9a-f]{64}$'),
  hash text not null check (hash ~ '^[0-9a-f]{64}$'),
  -- HMAC of the place and the hash by the process that wrote it, hex.
  mac text not null check (mac ~ '^[0-9a-f]{64}$')
);
create index journal_of_account on journal_entry (account_id, sequence);
create trigger append_only before update or delete or truncate on journal_entry execute function refuse_change();

-- The end of the journal, for a transaction that appends to it. The lock comes first, so that the read sees the latest entry.
create function journal_head(out sequence bigint, out hash text) language plpgsql as $$
#variable_conflict use_column
begin
  perform pg_advisory_xact_lock(hashtext('bursar journal'), 0);
  select j.sequence, j.hash into sequence, hash from journal_entry j order by j.sequence desc limit 1;
end $$;
`
