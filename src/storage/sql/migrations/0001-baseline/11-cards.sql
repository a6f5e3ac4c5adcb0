-- Cards: their controls, the purchases made with them, and the money held for those. The money of one purchase may lie in
-- several assets: spend_reserve decides and holds the first, ledger_post holds the others, in one transaction.

-- Cards that the processor is about to be asked for, written down first: when an answer is lost, the request is repeated under the
-- same name, which the processor takes once.
create table card_order (
  -- The id that the card will have.
  id text collate "C" primary key,
  account_id text not null references account,
  wanted jsonb not null,
  -- The caller and its idempotency key, if any; null: the gateway itself ordered the card.
  caller_kind text check (caller_kind in ('person', 'key')),
  caller text,
  caller_key text,
  status text not null check (status in ('open', 'issued', 'given_up')),
  created_at timestamptz not null,
  tried_at timestamptz not null
);
create index card_order_open on card_order (tried_at) where status = 'open';
create index card_order_call on card_order (caller, caller_key, created_at) where caller_key is not null;

create table card (
  id text collate "C" primary key,
  account_id text not null references account,
  -- The key whose policy applies too; null: the owner's own card.
  key_id text collate "C",
  processor_token text collate "C" not null unique,
  type text not null check (type in ('virtual', 'physical')),
  status text not null default 'active' check (status in ('active', 'frozen', 'canceled')),
  brand text not null,
  last4 text not null,
  exp_month int not null,
  exp_year int not null,
  currency text not null,
  cardholder_name text not null,
  nickname text,
  -- Smallest units of the currency; null: no limit.
  daily_max bigint check (daily_max >= 0),
  purchase_max bigint check (purchase_max >= 0),
  channels text[] not null,
  mcc_allow text[],
  mcc_deny text[] not null default '{}',
  priority text[] not null,
  -- Rises with every change of a control.
  version int not null default 1,
  created_at timestamptz not null
);
create index card_of_account on card (account_id, id);

-- The amount approved on a card in a day, for its daily limit.
create table card_usage (
  card_id text collate "C" not null,
  day date not null,
  units bigint not null check (units >= 0),
  primary key (card_id, day)
) with (fillfactor = 50);

-- One purchase, or another request of the processor about a card. Amounts are smallest units of the card's currency.
create table card_authorization (
  id text collate "C" primary key,
  processor_token text collate "C" not null unique,
  webhook_id text collate "C" unique,
  -- Hash of the whole request: only an identical one is a repetition. Null where the processor did not ask.
  fingerprint text,
  card_id text collate "C" not null,
  account_id text collate "C" not null,
  key_id text collate "C",
  decision_id text collate "C",
  day date not null,
  reason text not null,
  status text not null check (status in ('pending', 'settled', 'voided', 'expired', 'declined')),
  units bigint not null check (units >= 0),
  approved bigint not null check (approved >= 0),
  cleared bigint not null default 0,
  refunded bigint not null default 0,
  shortfall bigint not null default 0,
  about jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
) with (fillfactor = 80);
create index card_authorization_of_card on card_authorization (card_id, id);
create index card_authorization_of_account on card_authorization (account_id) where status = 'pending';
create index card_authorization_by_account on card_authorization (account_id, id);
create index card_authorization_open on card_authorization (created_at) where status = 'pending';

-- Money that is still held for an authorization, in the order in which it is spent.
create table card_hold (
  authorization_id text collate "C" not null references card_authorization,
  ordinal int not null,
  place text not null,
  asset text not null,
  units bigint not null check (units >= 0),
  -- The worth in millionths of a USD.
  micros bigint not null check (micros >= 0),
  primary key (authorization_id, ordinal)
) with (fillfactor = 80);

-- Events of an authorization, each applied once. Another authorization's event may have the same id.
create table card_event (
  id text collate "C" not null,
  authorization_id text collate "C" not null references card_authorization,
  kind text not null,
  units bigint not null,
  at timestamptz not null,
  primary key (authorization_id, id)
);

-- Out-of-order messages: events that arrived before their authorization, as the processor sent them.
create table card_early (
  webhook_id text collate "C" primary key,
  processor_token text collate "C" not null,
  message jsonb not null,
  received_at timestamptz not null
);

-- Stablecoins that were spent and are on their way to the treasury. Each try is a reservation under a decision of its own, whose
-- money was held before and stays held where the chain refuses it: the merchant was paid whatever the chain does. A refused try
-- is repeated after a doubling pause; from the tenth on, its worth is a debt too.
create table card_settlement (
  -- The decision of the first try.
  id text collate "C" primary key,
  account_id text not null references account,
  -- The purchase that it pays for; null: it pays a debt.
  authorization_id text collate "C" references card_authorization,
  card_id text collate "C",
  place text not null,
  asset text not null,
  units bigint not null check (units >= 0),
  -- The debt of its owner where it cannot be settled, and the system account that was paid for it.
  owed_asset text not null,
  owed_units bigint not null check (owed_units >= 0),
  paid_to text not null,
  status text not null default 'sending' check (status in ('sending', 'refused', 'settled', 'freed')),
  -- The decision of the last try.
  decision_id text collate "C" not null unique references decision,
  tries int not null default 1,
  -- The subject of the last refusal: 'authorization' or 'transfer'.
  refused_by text,
  next_try_at timestamptz,
  ended_at timestamptz,
  created_at timestamptz not null,
  check ((status = 'refused') = (next_try_at is not null)),
  check ((status in ('settled', 'freed')) = (ended_at is not null))
) with (fillfactor = 80);
create index card_settlement_of_account on card_settlement (account_id, ended_at);
create index card_settlement_sending on card_settlement (decision_id) where status = 'sending';
create index card_settlement_refused on card_settlement (next_try_at) where status = 'refused';
