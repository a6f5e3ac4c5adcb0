/** Alarms: what was reported or written and does not fit, until a person has resolved it. The values that this database belongs to. */
export const alarms = `
create table alarm (
  -- The part of the gateway, such as 'investing' or 'audit'.
  domain text collate "C" not null,
  -- What it is about, such as an order or a decision.
  object_id text collate "C" not null,
  reason text collate "C" not null,
  -- The report that does not fit.
  reported jsonb not null,
  times int not null default 1,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  resolved_at timestamptz,
  resolved_by text references account,
  note text,
  primary key (domain, object_id, reason),
  check ((resolved_at is null) = (resolved_by is null))
);
create index alarm_open on alarm (domain, first_seen_at) where resolved_at is null;

-- Written by the first gateway that starts on this database; every later one must have the same.
create table deployment (
  name text primary key check (name in ('data_key', 'chain_id', 'chain_owner')),
  value text not null,
  written_at timestamptz not null
);
`
