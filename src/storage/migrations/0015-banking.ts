/**
 * Banking: virtual accounts, and what the provider says of deposits and payouts. Its events may come twice and in any order:
 * a state only ever moves to a higher rank, and the ledger knows a deposit by its own name.
 */
export const banking = `
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
  -- The stablecoin that deposits become; null: they stay cash.
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
  -- The amount that the events have named, where it is booked by them.
  said_units bigint,
  -- What was booked, once it was.
  place text,
  asset text,
  units bigint,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index deposit_of_account on deposit (account_id, id);

-- Money that leaves through the provider: held under its decision until the provider says how it ended.
create table payout (
  id text collate "C" primary key,
  account_id text not null references account,
  decision_id text collate "C" not null unique references decision,
  state text not null,
  rank int not null default 0,
  updated_at timestamptz not null
);
`
