-- Webhook endpoints: where an owner's programs receive events, and the deliveries to them.

create table webhook_endpoint (
  id text collate "C" primary key,
  account_id text collate "C" not null references account,
  url text not null,
  description text,
  -- Empty: all types.
  types text[] not null,
  status text not null default 'active' check (status in ('active', 'disabled')),
  -- The secret, sealed, and the one before a rotation, which signs too until then.
  secret bytea not null,
  previous_secret bytea,
  previous_until timestamptz,
  created_at timestamptz not null,
  -- The first failure since the last success, and the failures in a row.
  failing_since timestamptz,
  failures int not null default 0 check (failures >= 0),
  -- After many failures in a row, one delivery is tried then.
  paused_until timestamptz,
  -- When the next delivery is due; null: none is.
  due_at timestamptz,
  -- A gateway delivers to it until then.
  busy_until timestamptz not null,
  check ((previous_secret is null) = (previous_until is null)),
  check ((failing_since is null) = (failures = 0))
) with (fillfactor = 70);
create index webhook_endpoint_of_account on webhook_endpoint (account_id, id);
create index webhook_endpoint_due on webhook_endpoint (due_at) where status = 'active' and due_at is not null;

create table webhook_delivery (
  id text collate "C" primary key,
  endpoint_id text collate "C" not null references webhook_endpoint on delete cascade,
  event_id text collate "C" not null,
  -- Of the event, by which it is found.
  account_id text collate "C" not null,
  sequence bigint not null,
  type text not null,
  status text not null check (status in ('pending', 'delivered', 'failed')),
  -- The last attempts: [{"at", "httpStatus", "ms", "error"}].
  attempts jsonb not null,
  tries int not null default 0,
  created_at timestamptz not null,
  next_attempt_at timestamptz,
  check ((status = 'pending') = (next_attempt_at is not null))
) with (fillfactor = 70);
create index webhook_delivery_of_endpoint on webhook_delivery (endpoint_id, id);
create index webhook_delivery_due on webhook_delivery (endpoint_id, next_attempt_at) where status = 'pending';
create index webhook_delivery_expired on webhook_delivery (created_at);
