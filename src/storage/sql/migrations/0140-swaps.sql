-- Swaps of one token to another, executed by the wallet through the swap desk.

-- The route of a transfer to the desk: {buy, minReceived, target, spender, data}; null: a plain payment.
alter table transfer add column route jsonb;
-- The same for what a signer is asked to sign.
alter table intent add column route jsonb;
-- The route of a quote that can be executed, with the chain and the name of its aggregator; null: the quote is a price only.
alter table swap_quote add column route jsonb;

create table swap_order (
  id text collate "C" primary key,
  account_id text collate "C" not null references account,
  key_id text collate "C",
  decision_id text collate "C" not null unique,
  quote_id text collate "C" not null unique,
  chain text not null,
  sell text not null,
  units bigint not null check (units > 0),
  buy text not null,
  min_received bigint not null check (min_received > 0),
  -- What the quote expected, and its cost in millionths of a US dollar.
  expected bigint not null,
  fee_micros bigint not null,
  route text not null,
  state text not null check (state in ('submitted', 'confirmed', 'failed')),
  -- What arrived, and what came back unsold, by the logs of the operation.
  received bigint,
  unsold bigint not null default 0,
  transaction_hash text,
  failure text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  check ((state = 'confirmed') = (received is not null))
);
create index swap_order_of_account on swap_order (account_id, id);
create index swap_order_open on swap_order (updated_at) where state = 'submitted';
create index swap_order_of_transaction on swap_order (transaction_hash) where transaction_hash is not null;
