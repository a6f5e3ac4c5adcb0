/**
 * What a provider is about to be asked for, written down before it is asked: an answer that is lost is asked for again under
 * the same name, which the provider takes once.
 */
export const intentions = `
create table card_order (
  -- The id of the card to be.
  id text collate "C" primary key,
  account_id text not null references account,
  wanted jsonb not null,
  -- Whose call it was, and its idempotency key, if any; null: the gateway itself ordered it.
  caller_kind text check (caller_kind in ('person', 'key')),
  caller text,
  caller_key text,
  status text not null check (status in ('open', 'issued', 'given_up')),
  created_at timestamptz not null,
  tried_at timestamptz not null
);
create index card_order_open on card_order (tried_at) where status = 'open';
create index card_order_call on card_order (caller, caller_key, created_at) where caller_key is not null;

create table virtual_account_order (
  -- The id of the virtual account to be.
  id text collate "C" primary key,
  account_id text not null references account,
  currency text not null,
  ordinal int not null,
  holder_name text not null,
  token text,
  chain text,
  address text,
  status text not null check (status in ('open', 'opened', 'given_up')),
  created_at timestamptz not null,
  tried_at timestamptz not null
);
create unique index virtual_account_order_open on virtual_account_order (account_id, currency) where status = 'open';
create index virtual_account_order_due on virtual_account_order (tried_at) where status = 'open';

-- Sandbox: what the books have been credited with and the chain may not have yet.
create table owed_mint (
  id text collate "C" primary key,
  account_id text not null references account,
  token text not null,
  address text not null,
  units bigint not null check (units > 0),
  tried_at timestamptz not null
);
create index owed_mint_due on owed_mint (tried_at);
create index owed_mint_account on owed_mint (account_id);
`
