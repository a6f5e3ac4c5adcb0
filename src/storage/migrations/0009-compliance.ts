/** Compliance: whom an owner never pays, what the Travel Rule asks, and a look back at transfers that stays cheap. */
export const compliance = `
-- ISO 3166-1 alpha-2, once it is known; decides which Travel Rule holds.
alter table account add column country text check (country ~ '^[A-Z]{2}$');

create table blocked_address (
  account_id text not null references account,
  address text not null check (address = lower(address)),
  created_at timestamptz not null,
  primary key (account_id, address)
);

create table travel_rule (
  id text collate "C" primary key,
  account_id text not null references account,
  status text not null check (status in ('required', 'not_required', 'sent', 'accepted', 'declined')),
  token text not null,
  units bigint not null check (units > 0),
  destination text not null check (destination = lower(destination)),
  chain text not null,
  -- The decision of the transfer that it goes with: one, and for good while that transfer's money is not given back.
  decision_id text collate "C" unique references decision,
  -- The IVMS101 payload, sealed; null once it was erased.
  sealed bytea,
  created_at timestamptz not null,
  erased_at timestamptz,
  check ((sealed is null) = (erased_at is not null))
);
create index travel_rule_of_transfer on travel_rule (account_id, destination, token, units, id);
`
