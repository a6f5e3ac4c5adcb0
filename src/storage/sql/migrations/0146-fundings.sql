-- Payments whose money is moved first: USDC of another chain of the account, by a bridge order of the same decision.

-- The money of a payment that is on its way to the payment's chain.
create table funding (
  -- Also the name of the reservation of what is sent.
  id text collate "C" primary key,
  decision_id text collate "C" not null unique references decision,
  account_id text collate "C" not null references account,
  chain text not null,
  from_chain text not null,
  asset text not null,
  -- What the payment needs in all, and how much of it is on its way; the rest was held on its chain at once.
  units bigint not null check (units > 0),
  needed bigint not null check (needed > 0 and needed <= units),
  state text not null check (state in ('moving', 'arrived', 'failed')),
  failure text,
  -- Until when the payment waits; what arrives later is available.
  wait_until timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  check ((state = 'failed') = (failure is not null))
);
create index funding_moving on funding (wait_until) where state = 'moving';

-- The burn of a funding has the decision of its payment, and a reservation of its own. A payment in `funding` is not sent yet.
alter table transfer add column funding_id text collate "C";
alter table transfer drop constraint transfer_decision_id_key;
create unique index transfer_of_decision on transfer (decision_id, funding_id) nulls not distinct;
create unique index transfer_of_funding on transfer (funding_id) where funding_id is not null;
alter table transfer drop constraint transfer_state_check;
alter table transfer add constraint transfer_state_check
  check (state in ('funding', 'reserved', 'submitted', 'settlement_pending', 'confirmed', 'failed'));
alter table swap_order add column funding_id text collate "C" unique;

-- A payment all of whose money is on its way holds nothing yet.
alter table reservation drop constraint reservation_units_check;
alter table reservation add constraint reservation_units_check check (units >= 0);

-- funding: {source, held, units, needed, …}: units are taken from another place than the payment's, which lacks the needed ones;
--   null: none
alter type spend_request add attribute funding jsonb;
