-- Operations: what instances share besides money, and what the database knows about itself.

-- Values that belong to this database, written by the first gateway that starts on it. Every later gateway must have the same.
create table deployment (
  name text primary key check (name in ('data_key', 'chain_id', 'chain_owner')),
  value text not null,
  written_at timestamptz not null
);

-- The database functions as they were last applied: one row for each file in functions/. See the README.
create table schema_function (
  name text primary key,
  -- SHA-256 of the whole file, and of the function's head alone: a new head means that the old function is dropped first.
  hash text not null,
  head_hash text not null,
  -- The program's version. An older program leaves the functions of a newer one alone.
  version text not null,
  applied_at timestamptz not null default now()
);

-- Switches of the rails. A rail without a row is on in a sandbox and off in production.
create table rail_control (
  rail text primary key,
  enabled boolean not null,
  reason text,
  updated_at timestamptz not null
);

-- Counters of rate limits. Unlogged: they may be lost in a crash.
create unlogged table rate_window (
  key text primary key,
  opened_at timestamptz not null,
  count int not null
);

-- Keys that a sandbox makes for itself. In production they are configured.
create table sandbox_secret (
  name text primary key,
  value text not null
);

-- Webhooks that had no effect, kept for the record.
create table webhook_event (
  provider text not null,
  id text collate "C" not null,
  type text not null,
  received_at timestamptz not null,
  primary key (provider, id)
);

-- Votes on pages of the documentation, without their readers.
create table docs_feedback (
  page text collate "C" primary key,
  up bigint not null default 0,
  down bigint not null default 0
);
