-- Quotes of payouts: terms that the banking provider keeps to until they expire. One payout uses a quote.

create table payout_quote (
  id text collate "C" primary key,
  account_id text not null references account,
  recipient_id text collate "C" not null references payout_recipient,
  asset text not null,
  units bigint not null check (units > 0),
  -- Part of units.
  fee_units bigint not null check (fee_units >= 0),
  currency text not null,
  recipient_units bigint not null check (recipient_units > 0),
  rate text not null,
  eta timestamptz not null,
  expires_at timestamptz not null
);
create index payout_quote_expired on payout_quote (expires_at);

-- The quote that the payout was sent on; null: none. Quotes are deleted after they expired.
alter table payout add column quote_id text collate "C";
create unique index payout_of_quote on payout (quote_id) where quote_id is not null;
