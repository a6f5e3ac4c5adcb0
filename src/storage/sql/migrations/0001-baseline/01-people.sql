-- People: accounts, every way to sign in, the second factor, and locks. E-mail addresses and phone numbers are looked up by
-- keyed hashes and kept sealed, for security notices to their owner.
--
-- In all files of this folder: ids are text; amounts are bigint in the smallest unit of their asset; days are UTC. Columns that
-- the money functions compare have the collation "C": comparing bytes is fast, and the lock order means the same on every
-- server. Tables on the path of a spend have no foreign keys: functions write both rows, and a shared parent row would be hot.
-- Triggers are in functions/, beside the function that they run.

create table account (
  id text primary key,
  role text not null default 'user' check (role in ('user', 'admin')),
  status text not null default 'active' check (status in ('active', 'locked')),
  guest boolean not null default false,
  display_name text not null,
  kyc_level text not null default 'none',
  created_at timestamptz not null,
  locked_at timestamptz,
  lock_reason text check (lock_reason in ('second_factor', 'admin', 'person')),
  -- The owner's caps over all keys of the account, in millionths of a USD: each UTC day, ISO week and month; null: no cap.
  agent_daily_max_micros bigint check (agent_daily_max_micros >= 0),
  agent_weekly_max_micros bigint check (agent_weekly_max_micros >= 0),
  agent_monthly_max_micros bigint check (agent_monthly_max_micros >= 0),
  -- ISO 3166-1 alpha-2, once it is known. It decides which Travel Rule applies.
  country text check (country ~ '^[A-Z]{2}$')
);

create table session (
  id text primary key,
  account_id text not null references account,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  revoked_at timestamptz,
  method text not null default 'guest'
    check (method in ('passkey', 'email', 'sms', 'identity_provider', 'guest', 'recovery')),
  -- When a second factor was last shown on the session.
  stepped_up_at timestamptz
);
create index session_of_account on session (account_id);

create table challenge (
  id text primary key,
  kind text not null check (kind in ('passkey_register', 'passkey_login', 'otp', 'recovery', 'identity_provider')),
  -- The value by which a client refers to it: a WebAuthn challenge, an OAuth state, or the keyed hash of a destination.
  subject text not null,
  account_id text references account,
  facts jsonb not null,
  tries int not null default 0,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index challenge_of_subject on challenge (kind, subject);
create index challenge_expired on challenge (expires_at);

create table passkey (
  -- The authenticator's own id, base64url.
  credential_id text primary key,
  id text not null unique,
  account_id text not null references account,
  -- COSE.
  public_key bytea not null,
  counter bigint not null,
  transports text[] not null,
  device_type text not null check (device_type in ('singleDevice', 'multiDevice')),
  backed_up boolean not null,
  created_at timestamptz not null,
  last_used_at timestamptz
);
create index passkey_of_account on passkey (account_id);

-- One row for each e-mail address or phone number that signs an account in.
create table login_destination (
  destination_hash text primary key,
  account_id text not null references account,
  channel text not null check (channel in ('email', 'sms')),
  sealed_address bytea not null,
  created_at timestamptz not null
);
create index login_destination_of_account on login_destination (account_id);

create table federated_identity (
  issuer text not null,
  subject text not null,
  account_id text not null references account,
  created_at timestamptz not null,
  primary key (issuer, subject)
);
create index federated_identity_of_account on federated_identity (account_id);

-- The second factor of an account. Only POST /api/security/mfa writes it and its recovery codes.
create table mfa (
  account_id text primary key references account,
  sealed_secret bytea not null,
  status text not null check (status in ('pending', 'active')),
  -- The newest time step whose code was used. No code works twice.
  last_time_step bigint not null default 0,
  created_at timestamptz not null,
  activated_at timestamptz,
  check ((status = 'active') = (activated_at is not null))
);

create table mfa_recovery_code (
  account_id text not null references mfa on delete cascade,
  -- The keyed hash of the code.
  code_hash text not null,
  used_at timestamptz,
  primary key (account_id, code_hash)
);

create table failed_factor (
  account_id text not null references account,
  at timestamptz not null
);
create index failed_factor_of_account on failed_factor (account_id, at);

-- Records of the OpenID provider that the gateway serves, by the model names of its library.
create table openid_record (
  model text not null,
  id text not null,
  payload jsonb not null,
  grant_id text,
  uid text,
  expires_at timestamptz,
  consumed_at timestamptz,
  primary key (model, id)
);
create index openid_record_of_grant on openid_record (grant_id) where grant_id is not null;
create index openid_record_of_uid on openid_record (uid) where uid is not null;
create index openid_record_expired on openid_record (expires_at);

create table sandbox_message (
  id text primary key,
  channel text not null,
  destination text not null,
  code text not null,
  body text not null,
  sent_at timestamptz not null
);
