/**
 * Cards: their controls, what was asked of them, and what is held for it. A purchase is one spend of the spend engine, whose
 * money may lie in several assets: `spend_reserve` decides and holds the first, `ledger_post` holds the others, all in one
 * transaction and one round trip.
 *
 * Locks are those of 0005-budgets, in its order; two are added. `card_apply` takes the row of its authorization first, as a
 * resolve takes its reservation. `card_authorize` takes the processor's token and then its webhook's id where others take an
 * idempotency pair. Under the account's lock lie card_usage, card_hold, card_settlement, debt and the owner of the wallet: what
 * a wallet that its owner holds must still pay for cards is read under it. Balances are taken all at once, in order, before
 * any of them changes.
 */
export const cards = `
alter table wallet
  -- What cards held when the gateway gave the wallet to its owner, in millionths of a USD as the chain's allowances count:
  -- the hand-over lets the gateway spend it once.
  add column card_cover bigint not null default 0 check (card_cover >= 0);

create table card (
  id text collate "C" primary key,
  account_id text not null references account,
  -- The key whose policy decides too; null: the owner's own card.
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
  -- Smallest units of the currency; null is no limit.
  daily_max bigint check (daily_max >= 0),
  purchase_max bigint check (purchase_max >= 0),
  channels text[] not null,
  mcc_allow text[],
  mcc_deny text[] not null default '{}',
  priority text[] not null,
  version int not null default 1,
  created_at timestamptz not null
);
create index card_of_account on card (account_id, id);

create table card_usage (
  card_id text collate "C" not null,
  day date not null,
  units bigint not null check (units >= 0),
  primary key (card_id, day)
) with (fillfactor = 50);

-- One purchase, or what else was asked of a card. Amounts are smallest units of the card's currency.
create table card_authorization (
  id text collate "C" primary key,
  processor_token text collate "C" not null unique,
  webhook_id text collate "C" unique,
  -- Of the whole request: only the very same one is a repetition. Null where nobody was asked.
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
create index card_authorization_open on card_authorization (created_at) where status = 'pending';

-- What is still held for an authorization, in the order in which it is spent; worth in millionths of a USD.
create table card_hold (
  authorization_id text collate "C" not null references card_authorization,
  ordinal int not null,
  place text not null,
  asset text not null,
  units bigint not null check (units >= 0),
  micros bigint not null check (micros >= 0),
  primary key (authorization_id, ordinal)
) with (fillfactor = 80);

-- An event is one of its authorization: another's event may have the same name.
create table card_event (
  id text collate "C" not null,
  authorization_id text collate "C" not null references card_authorization,
  kind text not null,
  units bigint not null,
  at timestamptz not null,
  primary key (authorization_id, id)
);

-- What came of a transaction before its authorization, as the processor sent it.
create table card_early (
  webhook_id text collate "C" primary key,
  processor_token text collate "C" not null,
  message jsonb not null,
  received_at timestamptz not null
);

-- Webhooks that had no effect, for the record.
create table webhook_event (
  provider text not null,
  id text collate "C" not null,
  type text not null,
  received_at timestamptz not null,
  primary key (provider, id)
);
`
