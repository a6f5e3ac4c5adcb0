-- Alarms: reports and records that do not fit, until a person has resolved them.

create table alarm (
  -- The part of the gateway, such as 'investing' or 'audit'.
  domain text collate "C" not null,
  -- The object's id, such as an order's or a decision's.
  object_id text collate "C" not null,
  reason text collate "C" not null,
  -- The report that does not fit.
  reported jsonb not null,
  times int not null default 1,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  -- While it is null, the object is stopped.
  resolved_at timestamptz,
  resolved_by text references account,
  note text,
  primary key (domain, object_id, reason),
  check ((resolved_at is null) = (resolved_by is null))
);
create index alarm_open on alarm (domain, first_seen_at) where resolved_at is null;
