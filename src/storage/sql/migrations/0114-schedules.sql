-- Schedules: calls that the gateway makes again and again for an owner, or for a key that its owner allowed it.
create table schedule (
  id text collate "C" primary key,
  account_id text collate "C" not null references account,
  -- The key that it spends as; null: the owner.
  key_id text collate "C" references access_key,
  -- The approval under which a key made it; null: the owner made it.
  approval_id text collate "C",
  operation text not null check (operation in ('wallets.transfer', 'banking.payouts.create', 'purchases.buy', 'investing.order')),
  -- Input of each call, as it was sent.
  input text not null,
  unit text not null check (unit in ('day', 'week', 'month')),
  -- Units between two due times.
  step int not null check (step > 0),
  -- ISO weekday, or day of the month; null for days.
  on_day int,
  tz text not null,
  -- Its wall clock in tz is that of every due time.
  starts_at timestamptz not null,
  ends_at timestamptz,
  grace_hours int not null check (grace_hours > 0),
  -- {max, risePct}; null: none.
  price_guard jsonb,
  status text not null default 'active' check (status in ('active', 'paused', 'failing', 'ended')),
  -- Due times are counted from starts_at; next_index is that of next_at, last_index the last one that there is.
  next_index int not null check (next_index >= 0),
  last_index int,
  -- Null: no time is due any more.
  next_at timestamptz,
  -- Failed runs since the last that was completed, or since it was resumed.
  failures int not null default 0,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index schedule_of_account on schedule (account_id, id);
create index schedule_due on schedule (next_at) where status = 'active';
create index schedule_of_key on schedule (key_id) where status <> 'ended';

-- The due times whose turn has come, each once: claimed before its call is made. `claimed_at` and `busy_until` are of the machine's clock.
create table schedule_run (
  schedule_id text collate "C" not null references schedule,
  at timestamptz not null,
  status text not null check (status in ('running', 'completed', 'failed', 'denied', 'missed')),
  object_kind text,
  object_id text collate "C",
  decision_id text collate "C",
  -- What the owner was asked for this call; null: nothing.
  approval_id text collate "C",
  -- Code of the failure.
  reason text,
  -- What a purchase cost, which guards the price of the next.
  price text,
  claimed_at timestamptz not null,
  busy_until timestamptz not null,
  ended_at timestamptz,
  primary key (schedule_id, at),
  check ((status = 'running') = (ended_at is null))
);
create index schedule_run_open on schedule_run (busy_until) where status = 'running';
-- A schedule makes one call at a time.
create unique index schedule_run_one on schedule_run (schedule_id) where status = 'running';
