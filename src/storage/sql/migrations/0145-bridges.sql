-- USDC from one chain to another by CCTP v2: an order that burns on `chain` and mints on `to_chain`.

alter table swap_order
  -- Null: it arrives on the same chain.
  add column to_chain text,
  -- Attested message, its signatures and its nonce; the nonce alone is known where somebody else has minted first.
  add column message text,
  add column attestation text,
  add column message_nonce text,
  -- When this gateway last sent the mint; another try has to wait.
  add column mint_sent_at timestamptz,
  -- Transaction that minted, how many were booked, and what a replaced one left booked as spent.
  add column mint_hash text,
  add column mints integer not null default 0,
  add column lacking bigint not null default 0,
  -- When it is looked at next.
  add column look_at timestamptz;
alter table swap_order drop constraint swap_order_state_check;
alter table swap_order add constraint swap_order_state_check
  check (state in ('submitted', 'bridging', 'confirmed', 'failed'));
alter table swap_order add constraint swap_order_bridging_check check (state <> 'bridging' or to_chain is not null);
drop index swap_order_open;
create index swap_order_open on swap_order (updated_at) where state in ('submitted', 'bridging');
-- A message is minted once, so it ends one order.
create unique index swap_order_of_message on swap_order (message_nonce) where message_nonce is not null;
create index swap_order_of_mint on swap_order (to_chain, updated_at) where mint_hash is not null;

-- How the sandbox's attester behaves.
create table sandbox_bridge (
  id boolean primary key default true check (id),
  mode text not null,
  set_at timestamptz not null
);
