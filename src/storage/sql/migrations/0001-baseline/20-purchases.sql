-- Purchases: paid URLs bought for an account, and the purses that pay for them.

-- A purse is an address of the gateway's from which one key (or, under the account's own id, its people) signs payments. Its place
-- in the ledger is 'purse.' and its id. The private key is derived from the data key and the id.
create table purse (
  id text collate "C" primary key,
  account_id text not null references account,
  address text not null unique check (address = lower(address)),
  -- The wallet to which its money returns, and the HMAC of id, account and wallet by the process that opened it, hex.
  home text not null check (home = lower(home)),
  mac text not null,
  -- Whole units of the asset that are moved at a time; in smallest units of an asset with six decimals. 0: only what is needed.
  chunk bigint not null default 1000000 check (chunk >= 0),
  created_at timestamptz not null
);
create index purse_of_account on purse (account_id);

-- A purchase signs one authorization at most, and its nonce never changes. The row is written before anything is signed.
create table purchase (
  id text collate "C" primary key,
  account_id text not null references account,
  key_id text collate "C",
  decision_id text collate "C" not null unique references decision,
  purse_id text collate "C" not null references purse,
  -- The request. A fragment is never sent, and not stored.
  url text not null,
  origin text not null,
  -- By which the payee is remembered: the origin, or the resource where an origin has many sellers.
  seller text not null,
  -- Origin and path, by which the price is remembered.
  resource text not null,
  method text not null,
  request_hash text not null,
  purpose text,
  protocol text not null check (protocol in ('x402-v1', 'x402-v2', 'mpp')),
  chain text not null,
  network text not null,
  asset text not null,
  token text not null check (token = lower(token)),
  payer text not null check (payer = lower(payer)),
  pay_to text not null check (pay_to = lower(pay_to)),
  units bigint not null check (units > 0),
  nonce text not null check (nonce = lower(nonce)),
  -- The offer that is accepted, as the seller wrote it.
  offer json not null,
  -- Set when it is signed: the last moment of the authorization, and the block before it.
  valid_before timestamptz,
  since_block bigint,
  -- The header that pays, sealed, and its SHA-256.
  credential bytea,
  credential_hash text,
  -- 'reserved': nothing is signed. 'signed': it may be paid. 'settled': the chain shows the payment. 'failed': it never will be.
  state text not null default 'reserved' check (state in ('reserved', 'signed', 'settled', 'failed')),
  -- The seller's terms changed or it did not deliver: the authorization is being cancelled on the chain.
  is_canceled boolean not null default false,
  transaction_hash text,
  -- Why it was not paid, or why nothing came; a code of the failure table, and a sentence.
  failure_code text,
  failure text,
  -- What the seller delivered: the answer's head and body, sealed, and the body's SHA-256. Swept after a day, but for the hash.
  delivered_at timestamptz,
  delivered bytea,
  delivered_hash text,
  -- A process works on it until then.
  busy_until timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- When a reorganization of the chain undid the settlement; null: it stands.
  reversed_at timestamptz,
  unique (payer, token, nonce),
  check ((state = 'settled') = (transaction_hash is not null) or reversed_at is not null),
  check (state in ('reserved', 'failed') or credential_hash is not null)
) with (fillfactor = 80);
create index purchase_of_account on purchase (account_id, id);
create index purchase_of_seller on purchase (account_id, seller) where state = 'settled';
create index purchase_open on purchase (busy_until) where state in ('reserved', 'signed');
create index purchase_settled on purchase (updated_at) where state = 'settled';
create index purchase_delivered on purchase (delivered_at) where delivered is not null;

-- Money on its way from a purse back to the wallet.
create table purse_sweep (
  id text collate "C" primary key,
  purse_id text collate "C" not null references purse,
  asset text not null,
  units bigint not null check (units > 0),
  nonce text not null,
  valid_before timestamptz not null,
  since_block bigint not null,
  state text not null default 'open' check (state in ('open', 'settled', 'released')),
  created_at timestamptz not null
);
create unique index purse_sweep_open on purse_sweep (purse_id, asset) where state = 'open';
