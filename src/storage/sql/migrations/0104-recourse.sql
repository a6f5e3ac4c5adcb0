-- Recourse: the attempt to get the money of a payment back, one for each payment. Amounts are smallest units of the asset.
create table recourse (
  id text collate "C" primary key,
  account_id text collate "C" not null references account,
  -- The key that made the payment; null: a person.
  key_id text collate "C",
  -- The decision that allowed the payment; null: none did.
  decision_id text collate "C",
  object_kind text not null check (object_kind in ('purchase', 'card_transaction', 'payout', 'transfer')),
  object_id text collate "C" not null,
  reason text not null check (
    reason in ('not_delivered', 'not_as_described', 'duplicate', 'fraudulent', 'canceled', 'wrong_amount')),
  -- Words of whoever opened it.
  note text,
  status text not null default 'open' check (
    status in ('open', 'recovered', 'partly_recovered', 'refused', 'expired', 'impossible')),
  -- The latest way that was tried.
  route text not null,
  asset text collate "C" not null,
  -- What was paid, and had not come back when it was opened.
  claimed bigint not null check (claimed > 0),
  recovered bigint not null default 0 check (recovered >= 0 and recovered <= claimed),
  -- The goods had come when it was opened.
  was_delivered boolean not null,
  -- The goods have come since.
  is_delivered boolean not null default false,
  -- [{at, action, outcome, evidence}], oldest first.
  steps jsonb not null,
  deadline timestamptz not null,
  -- No other process works on it until then.
  busy_until timestamptz not null,
  -- When it is looked at next.
  next_at timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  ended_at timestamptz,
  unique (object_kind, object_id),
  check ((status = 'open') = (ended_at is null)),
  check (status <> 'partly_recovered' or recovered > 0)
);
create index recourse_of_account on recourse (account_id, id);
create index recourse_due on recourse (next_at) where status = 'open';

-- Money that came back, each arrival for one payment.
create table refund (
  -- The ledger's transaction of the arrival, and its entry in the activity.
  movement text collate "C" primary key,
  entry_id text collate "C" not null unique,
  recourse_id text collate "C" not null references recourse,
  account_id text collate "C" not null references account,
  object_kind text not null,
  object_id text collate "C" not null,
  asset text collate "C" not null,
  -- The part of the arrival that had been paid and not come back.
  units bigint not null check (units > 0),
  -- What the budgets of the payment got back, in millionths of a US dollar.
  usd_micros bigint not null check (usd_micros >= 0),
  at timestamptz not null
);
create index refund_of_object on refund (object_kind, object_id);

alter table account
  -- Money that comes back returns to the budgets that it was spent from.
  add column refunds_refill boolean not null default true;
