-- Events: what happened to an account, for its owner's programs. The trigger functions in functions/events write an event to the
-- outbox in the transaction of its effect; events_publish moves committed ones to the table that is read. Only there have they a
-- sequence: numbered by one publisher at a time, no event appears below one that a reader has seen, however late it was committed.

create table event_outbox (
  position bigint generated always as identity primary key,
  account_id text collate "C" not null,
  -- The key that caused the event, or that it is about; null: neither.
  agent_id text collate "C",
  type text not null,
  object_kind text not null,
  object_id text not null,
  -- Amounts are in smallest units, as text. No secrets and no personal data.
  data jsonb not null,
  at timestamptz not null
);

-- The last sequence of each account. It outlives its events, so that none is used again.
create table event_head (
  account_id text collate "C" primary key,
  last_sequence bigint not null check (last_sequence > 0)
) with (fillfactor = 50);

create table event (
  account_id text collate "C" not null,
  sequence bigint not null,
  id text collate "C" not null unique,
  agent_id text collate "C",
  type text not null,
  object_kind text not null,
  object_id text not null,
  data jsonb not null,
  at timestamptz not null,
  -- From then on it is kept: the time of an effect may lie far back, as a bank's report of a deposit.
  published_at timestamptz not null,
  primary key (account_id, sequence)
);
create index event_of_agent on event (agent_id, sequence) where agent_id is not null;
create index event_expired on event (published_at);

-- When the expiry of a pending approval was noticed, and its event written.
alter table approval add column expired_at timestamptz;
create index approval_expired on approval (expires_at) where status = 'pending' and expired_at is null;
