/**
 * Who owns a wallet on chain, and by whose word a transfer moves. An intent is what a signer signs: it is used by at most one
 * transfer, whose id it fixes beforehand.
 */
export const wallets = `
alter table wallet
  -- The first owner, from which the address follows, and the owner now: {"kind": "gateway" | "passkey" | "eoa", …}.
  add column origin jsonb not null default '{"kind":"gateway"}',
  add column owner jsonb not null default '{"kind":"gateway"}';

-- Keys that sign for a wallet and live outside: externally owned accounts. Passkeys and agents have tables of their own.
create table wallet_signer (
  id text collate "C" primary key,
  account_id text not null references account,
  address text not null check (address = lower(address)),
  created_at timestamptz not null,
  unique (account_id, address)
);

create table intent (
  id text collate "C" primary key,
  account_id text not null references account,
  kind text not null check (kind in ('transfer', 'allowance')),
  -- The RFC 8785 JSON that is signed; hash is its SHA-256 (0x hex).
  message text not null,
  hash text not null unique,
  operation_hash text not null,
  -- What it becomes when it is used: a transfer's id, or that of the allowance's operation.
  operation_id text collate "C" not null unique,
  token text,
  units bigint,
  destination text,
  chain text not null,
  agent_id text,
  daily_micros bigint,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz,
  check (kind <> 'transfer' or (token is not null and units is not null and destination is not null)),
  check (kind <> 'allowance' or (agent_id is not null and daily_micros is not null))
);
create index intent_open on intent (account_id, id) where used_at is null;
create index intent_expired on intent (expires_at);

alter table transfer
  -- By whose word the chain executes it, as the chain port spells it, and who that is to the caller.
  add column authorized jsonb not null default '{"kind":"gateway"}',
  add column signer text not null default 'sandbox' check (signer in ('sandbox', 'passkey', 'eoa', 'agent')),
  -- The chain does not execute it after this.
  add column valid_until timestamptz not null default now() + interval '10 minutes';
alter table transfer alter column valid_until drop default;
-- HMAC of what is sent, by the process that wrote it, hex.
alter table transfer add column mac text;

-- Where a wallet holds something else on the chain than in the books, and nothing pending explains it.
create table wallet_drift (
  account_id text not null references account,
  token text not null,
  booked bigint not null,
  on_chain bigint not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  primary key (account_id, token)
);

-- Money in the books that the chain no longer holds. \`frozen\`: moved from available to frozen, so that nothing spends it.
-- \`uncovered\`: what is held for pending spends and not backed by the chain; it cannot be frozen while they are open.
create table wallet_shortfall (
  account_id text not null references account,
  token text not null,
  frozen bigint not null check (frozen >= 0),
  uncovered bigint not null check (uncovered >= 0),
  first_seen_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (account_id, token)
);

-- By which a transaction's transfers are told from deposits and withdrawals.
create index transfer_of_transaction on transfer (transaction_hash) where state = 'confirmed';

-- How far a chain's transfers were searched for deposits. \`identity\` names the very chain: a development node may be replaced.
create table chain_cursor (
  chain text primary key,
  identity text not null,
  block_number bigint not null,
  block_hash text not null,
  -- Since when the books are those of this very chain: what was settled before happened on another.
  adopted_at timestamptz not null,
  updated_at timestamptz not null
);
`
