/**
 * Every table of the first release. Text ids; amounts are bigint smallest units of their asset. Columns that the money
 * functions compare are in collation C: comparing bytes is fast, and gives lock order one meaning on every server.
 * Rows on the path of a spend carry no foreign keys: the functions write both ends, and a shared parent row would be hot.
 */
export const tables = `
create table account (
  id text primary key,
  role text not null default 'user' check (role in ('user', 'admin')),
  status text not null default 'active' check (status in ('active', 'locked')),
  guest boolean not null default false,
  display_name text not null,
  kyc_level text not null default 'none',
  created_at timestamptz not null
);

create table session (
  id text primary key,
  account_id text not null references account,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  revoked_at timestamptz
);
create index session_of_account on session (account_id);

create table access_key (
  id text collate "C" primary key,
  account_id text not null references account,
  kind text not null check (kind in ('agent', 'developer', 'grant')),
  name text not null,
  thumbprint text unique,
  public_key text,
  secret_hash bytea unique,
  scopes text[] not null,
  status text not null default 'active' check (status in ('active', 'paused', 'revoked')),
  policy jsonb,
  policy_version int not null default 1,
  policy_hash text,
  created_at timestamptz not null,
  expires_at timestamptz
);
create index access_key_of_account on access_key (account_id);

create table wallet (
  account_id text primary key references account,
  address text not null unique check (address = lower(address)),
  chain text not null,
  created_at timestamptz not null
);

create table signature_nonce (
  key_id text not null,
  nonce text not null,
  expires_at timestamptz not null,
  primary key (key_id, nonce)
);
create index signature_nonce_expired on signature_nonce (expires_at);

create unlogged table rate_window (
  key text primary key,
  opened_at timestamptz not null,
  count int not null
);

create table rail_control (
  rail text primary key,
  enabled boolean not null,
  reason text,
  updated_at timestamptz not null
);

create table sandbox_secret (
  name text primary key,
  value text not null
);

create table ledger_transaction (
  id text collate "C" primary key,
  kind text not null,
  reference text not null,
  at timestamptz not null
);

create table posting (
  transaction_id text collate "C" not null,
  ordinal int not null,
  source text collate "C" not null,
  destination text collate "C" not null,
  asset text collate "C" not null,
  units bigint not null check (units > 0),
  primary key (transaction_id, ordinal),
  check (source <> destination)
);
-- A system account's balance is a sum when asked; owners' postings (the most of them) are not in these.
create index posting_from_system on posting (source, asset) include (units) where left(source, 5) <> 'acct_';
create index posting_to_system on posting (destination, asset) include (units) where left(destination, 5) <> 'acct_';

create table balance (
  account text collate "C" not null check (left(account, 5) = 'acct_'),
  asset text collate "C" not null,
  units bigint not null check (units >= 0),
  primary key (account, asset)
) with (fillfactor = 50);

create table decision (
  id text collate "C" primary key,
  at timestamptz not null,
  account_id text collate "C" not null,
  key_id text collate "C",
  policy_version int,
  policy_hash text,
  operation text not null,
  facts jsonb not null,
  verdict text not null check (verdict in ('allow', 'deny', 'insufficient_funds')),
  violations jsonb not null,
  available_units bigint
);
create index decision_of_account on decision (account_id, id);

create table reservation (
  decision_id text collate "C" primary key,
  account_id text not null,
  key_id text collate "C",
  day date not null,
  usd_micros bigint not null check (usd_micros >= 0),
  source text collate "C" not null,
  held text collate "C" not null,
  asset text collate "C" not null,
  units bigint not null check (units > 0),
  status text not null default 'reserved' check (status in ('reserved', 'settled', 'released')),
  reserved_at timestamptz not null,
  resolved_at timestamptz,
  check ((status = 'reserved') = (resolved_at is null))
) with (fillfactor = 80);
create index reservation_open on reservation (reserved_at) where status = 'reserved';

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
  updated_at timestamptz not null
);
create index transfer_of_account on transfer (account_id, id);
create index transfer_open on transfer (updated_at) where state in ('reserved', 'submitted', 'settlement_pending');

create table budget_usage (
  key_id text collate "C" not null,
  day date not null,
  used_micros bigint not null default 0 check (used_micros >= 0),
  count int not null default 0 check (count >= 0),
  primary key (key_id, day)
) with (fillfactor = 50);

create table idempotency (
  principal text collate "C" not null,
  key text collate "C" not null,
  fingerprint text not null,
  decision_id text collate "C",
  answer jsonb,
  created_at timestamptz not null,
  primary key (principal, key)
) with (fillfactor = 80);

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'table % is append-only: % refused; a correction is a new row', tg_table_name, tg_op;
end $$;

create trigger append_only before update or delete or truncate on ledger_transaction execute function refuse_change();
create trigger append_only before update or delete or truncate on posting execute function refuse_change();
create trigger append_only before update or delete or truncate on decision execute function refuse_change();
`
