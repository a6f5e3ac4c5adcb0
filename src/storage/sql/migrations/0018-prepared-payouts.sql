-- Payouts that the banking provider was asked for before their owner signed: it waits for stablecoins at an address that
-- only its answer names. One that is never signed moves nothing, and is canceled there.

create table prepared_payout (
  -- The payout that it becomes when it is signed; also its id at the provider, which creates one of it.
  id text collate "C" primary key,
  account_id text not null references account,
  recipient_id text collate "C" not null references payout_recipient,
  -- A chain's name.
  place text not null,
  asset text not null,
  units bigint not null check (units > 0),
  -- Part of units.
  fee_units bigint not null check (fee_units >= 0),
  currency text not null,
  recipient_units bigint not null check (recipient_units > 0),
  rate text not null,
  eta timestamptz not null,
  -- The payer's reference, sealed; null: none, or erased.
  sealed bytea,
  -- The payout at the provider and where it waits for the money; null: no answer yet.
  provider_id text collate "C" unique,
  deposit_to text,
  -- `new`: not answered; `awaiting`: it can be signed; `signed`: it is a payout; `ending`: being canceled at the provider.
  status text not null check (status in ('new', 'awaiting', 'signed', 'ending', 'ended', 'rejected')),
  created_at timestamptz not null,
  -- When the provider was last asked.
  tried_at timestamptz not null,
  check ((provider_id is null) = (deposit_to is null))
);
create index prepared_payout_of_account on prepared_payout (account_id, id);
create index prepared_payout_open on prepared_payout (tried_at) where status in ('new', 'awaiting', 'ending');

-- The prepared payout that the signed transfer funds; null: an ordinary transfer.
alter table intent add column payout_id text collate "C" references prepared_payout;
create index intent_of_payout on intent (payout_id) where payout_id is not null;

-- The address that funds it on the chain; null: none, or no answer yet.
alter table payout add column deposit_to text;
create index payout_unfunded on payout (deposit_to) where deposit_to is not null and rank < 2;
