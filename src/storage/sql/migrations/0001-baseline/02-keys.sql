-- Keys of agents, developers and OAuth grants, and the nonces of signed requests.

create table access_key (
  id text collate "C" primary key,
  account_id text not null references account,
  kind text not null check (kind in ('agent', 'developer', 'grant')),
  name text not null,
  thumbprint text unique,
  -- base64url of the 32 bytes of an Ed25519 key.
  public_key text,
  -- SHA-256.
  secret_hash bytea unique,
  scopes text[] not null,
  status text not null default 'active' check (status in ('active', 'paused', 'revoked')),
  policy jsonb,
  -- Rises with every change of the policy.
  policy_version int not null default 1,
  policy_hash text,
  created_at timestamptz not null,
  expires_at timestamptz
);
create index access_key_of_account on access_key (account_id);

-- Agents that ask to be registered by an owner whom they do not know yet.
create table agent_registration (
  -- SHA-256 of the code in the address of the owner's page.
  code_hash bytea primary key,
  -- SHA-256 of the secret with which the agent asks for the decision.
  secret_hash bytea not null,
  name text not null,
  -- base64url, as of access_key. Once only, so that the proof of its owner cannot be used again while it is valid.
  public_key text not null unique,
  status text not null default 'pending' check (status in ('pending', 'approved', 'rejected')),
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index agent_registration_expired on agent_registration (expires_at);

create table signature_nonce (
  key_id text not null,
  nonce text not null,
  expires_at timestamptz not null,
  primary key (key_id, nonce)
);
create index signature_nonce_expired on signature_nonce (expires_at);
