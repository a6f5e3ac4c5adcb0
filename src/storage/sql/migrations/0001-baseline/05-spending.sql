-- Spending: what is reserved, what has been used of each budget and AML window, and idempotency keys. Written by the functions
-- in functions/spending, under the locks that the README lists.

-- Money held for a spend until it is settled or released, once.
create table reservation (
  decision_id text collate "C" primary key,
  account_id text not null,
  key_id text collate "C",
  day date not null,
  usd_micros bigint not null check (usd_micros >= 0),
  -- The ledger accounts of the hold. Null for a relay: its money is not ours.
  source text collate "C",
  held text collate "C",
  asset text collate "C" not null,
  units bigint not null check (units > 0),
  status text not null default 'reserved' check (status in ('reserved', 'settled', 'released')),
  reserved_at timestamptz not null,
  resolved_at timestamptz,
  -- The part that has already gone, where the money goes in parts. Of a settled reservation, units is all that went.
  taken bigint not null default 0,
  -- The AML windows that count the spend. A release takes it out of them.
  windows jsonb,
  check ((status = 'reserved') = (resolved_at is null)),
  check ((source is null) = (held is null)),
  check (taken >= 0 and taken <= units)
) with (fillfactor = 80);
create index reservation_open on reservation (reserved_at) where status = 'reserved';

-- The use of each key's budgets by UTC day. Budgets of weeks and months are sums of their days.
create table budget_usage (
  key_id text collate "C" not null,
  day date not null,
  used_micros bigint not null default 0 check (used_micros >= 0),
  count int not null default 0 check (count >= 0),
  primary key (key_id, day)
) with (fillfactor = 50);

-- Counterparties that a key with a cool-down has asked to pay, and since when.
create table payee (
  key_id text collate "C" not null,
  counterparty text collate "C" not null check (counterparty = lower(counterparty)),
  first_seen_at timestamptz not null,
  primary key (key_id, counterparty)
);

-- Spends within the AML windows of an account. A window is kept as slots of a 24th of its length.
create table outflow_slot (
  account_id text collate "C" not null,
  rule text collate "C" not null check (rule in ('velocity', 'structuring')),
  -- The length of the window.
  seconds int not null check (seconds > 0),
  slot bigint not null,
  usd_micros bigint not null check (usd_micros >= 0),
  count int not null check (count >= 0),
  primary key (account_id, rule, seconds, slot)
) with (fillfactor = 50);

-- Idempotency keys, kept for 24 hours, or longer where the spend is still open.
create table idempotency (
  principal text collate "C" not null,
  key text collate "C" not null,
  fingerprint text not null,
  decision_id text collate "C",
  answer jsonb,
  created_at timestamptz not null,
  -- The payment under this key, where the caller paid from its own wallet.
  payment_id text collate "C",
  primary key (principal, key)
) with (fillfactor = 80);
create index idempotency_payment on idempotency (payment_id) where payment_id is not null;
