-- Cards for one purchase. Their amount is reserved when they are issued, as an authorization that no merchant asked for; the
-- purchase takes its holds from there. Amounts are cents.

alter table card_authorization
  -- The reserve of a card for one purchase.
  add column is_reserve boolean not null default false,
  -- The reserve that the purchase takes its money from, under the reserve's decision and day.
  add column reserve_id text collate "C" references card_authorization,
  -- The processor's name of the request that opened it; null: it had none.
  add column event_token text collate "C";
create index card_authorization_of_reserve on card_authorization (reserve_id) where reserve_id is not null;

-- Requests to raise an authorization, each decided once.
create table card_increment (
  authorization_id text collate "C" not null references card_authorization,
  event_token text collate "C" not null,
  fingerprint text not null,
  decision_id text collate "C",
  reason text not null,
  units bigint not null check (units >= 0),
  approved bigint not null check (approved >= 0),
  created_at timestamptz not null,
  primary key (authorization_id, event_token)
);

create table card_single_use (
  card_id text collate "C" primary key references card,
  account_id text collate "C" not null references account,
  reserve_id text collate "C" not null unique references card_authorization,
  units bigint not null check (units > 0),
  -- mcc, name and country of the only merchant; null members allow any.
  merchant jsonb not null,
  -- The label of what it is for.
  task text,
  expires_at timestamptz not null,
  status text not null default 'open' check (status in ('open', 'authorized', 'used', 'expired', 'canceled')),
  -- Its only purchase.
  authorization_id text collate "C" unique references card_authorization,
  ended_at timestamptz,
  check ((status in ('used', 'expired', 'canceled')) = (ended_at is not null))
);
create index card_single_use_open on card_single_use (expires_at) where ended_at is null;
