-- Banking: virtual accounts, and what the provider reports about deposits and payouts. Its events may arrive twice and in any
-- order: a state only moves to a higher rank, and the ledger knows each deposit by its own name.

-- Virtual accounts that the provider is about to be asked for, written down first: when an answer is lost, the request is repeated
-- under the same name, which the provider takes once.
create table virtual_account_order (
  -- The id that the virtual account will have.
  id text collate "C" primary key,
  account_id text not null references account,
  currency text not null,
  ordinal int not null,
  holder_name text not null,
  token text,
  chain text,
  address text,
  status text not null check (status in ('open', 'opened', 'given_up')),
  created_at timestamptz not null,
  tried_at timestamptz not null
);
create unique index virtual_account_order_open on virtual_account_order (account_id, currency) where status = 'open';
create index virtual_account_order_due on virtual_account_order (tried_at) where status = 'open';

create table virtual_account (
  id text collate "C" primary key,
  account_id text not null references account,
  currency text not null,
  ordinal int not null,
  status text not null check (status in ('pending', 'active', 'deactivated')),
  provider_id text collate "C" not null unique,
  provider_customer text,
  holder_name text not null,
  bank_name text not null,
  bank_address text not null,
  instructions jsonb not null,
  reference text not null,
  -- The stablecoin, chain and address that deposits are converted to; null: they stay cash.
  token text,
  chain text,
  address text,
  created_at timestamptz not null,
  unique (account_id, currency, ordinal),
  check ((token is null) = (chain is null) and (token is null) = (address is null))
);

create table deposit (
  id text collate "C" primary key,
  virtual_account_id text collate "C" not null references virtual_account,
  account_id text not null,
  state text not null,
  rank int not null,
  -- The amount according to the events, where they are what is booked.
  said_units bigint,
  -- The posting, once it was booked.
  place text,
  asset text,
  units bigint,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index deposit_of_account on deposit (account_id, id);

-- Money that leaves through the provider. It is held under its decision until the provider reports the outcome.
create table payout (
  id text collate "C" primary key,
  account_id text not null references account,
  decision_id text collate "C" not null unique references decision,
  state text not null,
  rank int not null default 0,
  updated_at timestamptz not null
);
