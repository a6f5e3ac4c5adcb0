-- An account's escrow: a second address, for which the gateway alone signs, that holds what cards have promised of a wallet that its
-- owner can empty. Lower case; null until it is first needed.
alter table wallet add column escrow text unique check (escrow = lower(escrow));

-- The smart account of its account that pays a transfer.
alter table transfer add column payer text not null default 'wallet' check (payer in ('wallet', 'escrow'));

-- Money on its way from a wallet to its escrow. Until the chain has decided, it is held in the wallet's books.
create table card_pull (
  decision_id text collate "C" primary key references decision,
  account_id text not null references account,
  -- The processor's name of the purchase that waits for it; null: it secures what was approved already, whose holds have the place
  -- `pull.<decision_id>` meanwhile.
  token text collate "C",
  -- The chain.
  place text not null,
  asset text not null,
  units bigint not null check (units > 0),
  status text not null default 'open' check (status in ('open', 'settled', 'released')),
  created_at timestamptz not null,
  ended_at timestamptz,
  check ((status = 'open') = (ended_at is null))
);
create index card_pull_of_account on card_pull (account_id, ended_at);
create index card_pull_open on card_pull (decision_id) where status = 'open';
