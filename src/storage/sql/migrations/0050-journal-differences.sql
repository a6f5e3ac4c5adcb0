-- Entries keep what changed, and a hash of the whole state where that is more.

alter table journal_entry
  -- SHA-256 of the canonical JSON of the whole state, hex; null where `before` and `after` are whole.
  add column before_hash text check (before_hash ~ '^[0-9a-f]{64}$'),
  add column after_hash text check (after_hash ~ '^[0-9a-f]{64}$');

-- Bytes of the entries of a day, by account and kind of actor.
create table journal_usage (
  account_id text not null references account,
  actor_kind text not null,
  day date not null,
  bytes bigint not null check (bytes >= 0),
  primary key (account_id, actor_kind)
);
