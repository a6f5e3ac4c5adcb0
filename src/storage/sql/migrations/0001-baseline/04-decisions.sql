-- Decisions on spends, and the seals that chain them. A job seals decisions, and no spend waits for it. Both tables are
-- append-only, except that a decision's authentication code is written once: see functions/integrity/refuse_change.sql.

create table decision (
  id text collate "C" primary key,
  at timestamptz not null,
  account_id text collate "C" not null,
  key_id text collate "C",
  policy_version int,
  policy_hash text,
  operation text not null,
  facts jsonb not null,
  verdict text not null check (verdict in ('allow', 'deny', 'insufficient_funds', 'approval_required')),
  violations jsonb not null,
  -- The source's available balance, where it was too low.
  available_units bigint,
  -- The transaction that wrote the decision. Every transaction below the oldest one still running has ended, so a reader that
  -- stops there misses nothing, however late a decision was committed. Ids by time cannot promise that.
  written_by xid8 not null default pg_current_xact_id(),
  -- HMAC of the decision by the process that took it, hex. Null until that process has authenticated the outcome; then written
  -- once.
  mac text check (mac ~ '^[0-9a-f]{64}$')
);
create index decision_of_account on decision (account_id, id);
create index decision_by_writer on decision (written_by, id);

create table decision_seal (
  -- From 1, without a gap.
  sequence bigint primary key check (sequence > 0),
  decision_id text collate "C" not null unique,
  -- The hash of the seal before; 64 zeros for the first.
  previous text not null check (previous ~ '^[0-9a-f]{64}$'),
  hash text not null check (hash ~ '^[0-9a-f]{64}$'),
  -- A compact JWS.
  receipt text not null,
  sealed_at timestamptz not null
);
