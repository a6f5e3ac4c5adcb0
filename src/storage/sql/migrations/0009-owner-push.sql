-- Push messages to owners' browsers about events of their accounts.

create table push_subscription (
  id text collate "C" primary key,
  account_id text not null references account,
  -- Of the endpoint, a secret URL of one browser: it belongs to the account that subscribed it last.
  endpoint_hash text not null unique,
  -- Endpoint and keys.
  sealed bytea not null,
  -- Host of the push service.
  host text not null,
  created_at timestamptz not null
);
create index push_subscription_of_account on push_subscription (account_id, id);

-- One row for each event and subscription. events_publish writes it; a sent message is deleted.
create table owner_push (
  subscription_id text collate "C" not null references push_subscription on delete cascade,
  sequence bigint not null,
  account_id text collate "C" not null,
  type text not null,
  object_id text not null,
  data jsonb not null,
  at timestamptz not null,
  -- A gateway sends it, or its next attempt is waited for, until then.
  held_until timestamptz not null,
  tries int not null default 0,
  -- A failed attempt after that is the last.
  expires_at timestamptz not null,
  primary key (subscription_id, sequence)
) with (fillfactor = 70);
create index owner_push_due on owner_push (held_until);

-- For administrators, who search accounts by the start of their names.
create index account_by_name on account (lower(display_name) text_pattern_ops);
