-- Requests for money: what an account asks for, and what has arrived since it first asked for any.
create table payment_request (
  id text collate "C" primary key,
  account_id text collate "C" not null references account,
  -- The key that asks; null: the owner.
  key_id text collate "C",
  -- Names its public page and its x402 URL.
  token text collate "C" not null unique,
  -- Creditor reference (ISO 11649) that a bank transfer names it by.
  reference text collate "C" not null unique,
  -- Bank account that its page shows.
  virtual_account_id text collate "C" references virtual_account,
  asset text collate "C" not null,
  units bigint not null check (units > 0),
  received_units bigint not null default 0 check (received_units >= 0),
  status text not null default 'open' check (status in ('open', 'partly_paid', 'paid', 'expired', 'canceled')),
  -- Written by its maker for its payer; null: nothing, or erased.
  payee text,
  memo text,
  expires_at timestamptz not null,
  -- The x402 payment that has it to itself, and until when.
  claim text collate "C",
  claimed_until timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  check ((claim is null) = (claimed_until is null))
);
create index payment_request_of_account on payment_request (account_id, id);
create index payment_request_due on payment_request (expires_at) where status in ('open', 'partly_paid');

-- Money that arrived in an account that has asked for some: each arrival belongs to one request, or to none.
create table request_arrival (
  -- Its entry in the activity.
  entry_id text collate "C" primary key,
  account_id text collate "C" not null references account,
  asset text collate "C" not null,
  units bigint not null check (units > 0),
  -- Chain by name, or 'bank'.
  place text collate "C" not null,
  transaction_hash text collate "C",
  at timestamptz not null,
  -- 'new': not looked at yet. 'unmatched': no single request is known to be meant.
  state text not null default 'new' check (state in ('new', 'matched', 'unmatched')),
  request_id text collate "C" references payment_request,
  kind text check (kind in ('transfer', 'x402', 'bank')),
  -- The x402 payment that brought it.
  payment_id text collate "C" unique,
  is_late boolean not null default false,
  -- The person who linked it by hand.
  linked_by text collate "C",
  reversed_at timestamptz,
  check ((state = 'matched') = (request_id is not null)),
  check ((request_id is null) = (kind is null))
);
create index request_arrival_new on request_arrival (at) where state = 'new';
create index request_arrival_of_account on request_arrival (account_id, at) where state = 'unmatched';
create index request_arrival_of_request on request_arrival (request_id) where request_id is not null;

-- Creditor reference in what the payer wrote; null: none, or several.
alter table deposit add column payer_reference text collate "C";
