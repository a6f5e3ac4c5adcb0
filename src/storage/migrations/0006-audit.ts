/**
 * The chain of decisions. A job seals them, a spend does not wait for it: all that a decision carries for it is the number of
 * the transaction that wrote it. Numbers below the oldest transaction that still runs are finished for good, so whoever read
 * up to there has missed nothing, however late a decision was committed; ids by time cannot promise that.
 */
export const audit = `
alter table decision add column written_by xid8 not null default pg_current_xact_id();
create index decision_by_writer on decision (written_by, id);

create table decision_seal (
  sequence bigint primary key check (sequence > 0),
  decision_id text collate "C" not null unique,
  previous text not null check (previous ~ '^[0-9a-f]{64}$'),
  hash text not null check (hash ~ '^[0-9a-f]{64}$'),
  receipt text not null,
  sealed_at timestamptz not null
);

create trigger append_only before update or delete or truncate on decision_seal execute function refuse_change();
`
