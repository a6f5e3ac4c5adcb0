-- Wallets: who owns each one on the chain, the transfers out of it, and where the chain and the ledger differ.

create table wallet (
  account_id text primary key references account,
  address text not null unique check (address = lower(address)),
  chain text not null,
  created_at timestamptz not null,
  -- The first owner, which determines the address, and the current owner: {"kind": "gateway" | "passkey" | "eoa", …}.
  origin jsonb not null default '{"kind":"gateway"}',
  owner jsonb not null default '{"kind":"gateway"}',
  -- Amount that cards held when the wallet passed to its owner, in millionths of a USD as the chain's allowances count. The
  -- hand-over lets the gateway spend this much once.
  card_cover bigint not null default 0 check (card_cover >= 0)
);

-- External signers of a wallet: externally owned accounts. Passkeys and agents have tables of their own.
create table wallet_signer (
  id text collate "C" primary key,
  account_id text not null references account,
  address text not null check (address = lower(address)),
  created_at timestamptz not null,
  unique (account_id, address)
);

-- Messages for a signer to sign. Each is used by at most one operation, whose id it fixes beforehand.
create table intent (
  id text collate "C" primary key,
  account_id text not null references account,
  kind text not null check (kind in ('transfer', 'allowance')),
  -- The RFC 8785 JSON that is signed, and its SHA-256 (0x hex).
  message text not null,
  hash text not null unique,
  operation_hash text not null,
  -- The id of the transfer, or of the allowance's operation, that it becomes when it is used.
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

create table transfer (
  id text collate "C" primary key,
  account_id text not null references account,
  decision_id text collate "C" not null unique references decision,
  token text not null,
  units bigint not null check (units > 0),
  destination text not null check (destination = lower(destination)),
  chain text not null,
  state text not null check (state in ('reserved', 'submitted', 'settlement_pending', 'confirmed', 'failed')),
  transaction_hash text,
  failure text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- The authorization that the chain executes it by, as the chain port spells it, and the kind of signer for the caller.
  authorized jsonb not null default '{"kind":"gateway"}',
  signer text not null default 'sandbox' check (signer in ('sandbox', 'passkey', 'eoa', 'agent')),
  -- The chain does not execute the transfer after this moment.
  valid_until timestamptz not null,
  -- HMAC of the content that is sent, by the process that wrote it, hex.
  mac text,
  -- The reason of a failure as the caller was given it. A repeated call gets the same.
  failure_code text check (failure_code in ('provider_unavailable', 'signature_rejected'))
);
create index transfer_of_account on transfer (account_id, id);
create index transfer_open on transfer (updated_at) where state in ('reserved', 'submitted', 'settlement_pending');
-- Tells a transaction's own transfers from deposits and withdrawals.
create index transfer_of_transaction on transfer (transaction_hash) where state = 'confirmed';
-- For the activity of the account that received it.
create index transfer_received on transfer (destination) where state = 'confirmed';

-- Wallets whose balance on the chain differs from the books while nothing pending explains it.
create table wallet_drift (
  account_id text not null references account,
  token text not null,
  booked bigint not null,
  on_chain bigint not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  primary key (account_id, token)
);

-- Money in the books that the chain no longer holds.
create table wallet_shortfall (
  account_id text not null references account,
  token text not null,
  -- Moved from available to frozen, so that nothing spends it.
  frozen bigint not null check (frozen >= 0),
  -- Held for pending spends and not backed by the chain. It cannot be frozen while they are open.
  uncovered bigint not null check (uncovered >= 0),
  first_seen_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (account_id, token)
);

-- The block up to which a chain's transfers have been searched for deposits.
create table chain_cursor (
  chain text primary key,
  -- Names this very chain: a development node may be replaced by a new one.
  identity text not null,
  block_number bigint not null,
  block_hash text not null,
  -- The moment since which the books are those of this chain. Anything settled earlier happened on another.
  adopted_at timestamptz not null,
  updated_at timestamptz not null,
  -- After a reorganization: settlements since then are being looked for again. A process that dies meanwhile leaves it to the next.
  verify_since timestamptz
);

-- Sandbox: credits in the books that may not have been minted on the chain yet.
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
