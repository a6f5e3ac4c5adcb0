-- Payouts: bank accounts that owners pay out to, and what is known of each payout. No program has written a payout before.

create table payout_recipient (
  id text collate "C" primary key,
  account_id text not null references account,
  currency text not null check (currency in ('USD', 'EUR', 'GBP')),
  country text not null,
  -- The last four characters of the account number; null: erased.
  last4 text,
  -- Name, account number and address, sealed; null: erased.
  sealed bytea,
  status text not null check (status in ('pending', 'active', 'removed')),
  -- The recipient at the banking provider; null: not registered there yet.
  provider_id text,
  created_at timestamptz not null,
  check (status = 'removed' or sealed is not null and last4 is not null)
);
create index payout_recipient_of_account on payout_recipient (account_id, id);

alter table payout
  add column recipient_id text collate "C" not null references payout_recipient,
  -- The key that pays; null: the owner.
  add column key_id text collate "C",
  add column status text not null check (status in ('pending', 'sent', 'paid', 'returned', 'failed')),
  -- The payout at the banking provider; null: no answer yet.
  add column provider_id text collate "C" unique,
  -- A chain's name or `bank`.
  add column place text not null,
  add column asset text not null,
  add column units bigint not null check (units > 0),
  -- Part of units.
  add column fee_units bigint not null check (fee_units >= 0),
  add column currency text not null,
  add column recipient_units bigint not null check (recipient_units > 0),
  add column rate text not null,
  add column eta timestamptz not null,
  -- The payer's reference, sealed; null: none, or erased.
  add column sealed bytea,
  -- Machine-readable reason of a failure.
  add column reason text,
  add column created_at timestamptz not null,
  -- When the provider was last asked.
  add column tried_at timestamptz not null;
create index payout_of_account on payout (account_id, id);
create index payout_open on payout (tried_at) where rank < 5;
create index payout_of_recipient on payout (recipient_id);
