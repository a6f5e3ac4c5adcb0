-- The journal: changes by people, administrators, keys and the gateway, each written in the transaction of the change.
-- Append-only: see functions/integrity/refuse_change.sql.

create table journal_entry (
  sequence bigint primary key check (sequence > 0),
  id text collate "C" not null unique,
  -- The account that may read the entry: the one that was changed, or the administrator's own.
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
  -- HMAC of the sequence number and the hash by the process that wrote it, hex.
  mac text not null check (mac ~ '^[0-9a-f]{64}$')
);
create index journal_of_account on journal_entry (account_id, sequence);
