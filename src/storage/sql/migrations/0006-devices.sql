-- Programs on other devices that a signed-in person allows to act in a session of their own.

alter table session add column name text;
alter table session drop constraint session_method_check;
alter table session add constraint session_method_check
  check (method in ('passkey', 'email', 'sms', 'identity_provider', 'guest', 'recovery', 'device'));

create table device_sign_in (
  -- SHA-256 of the code in the address of the person's page.
  code_hash bytea primary key,
  -- SHA-256 of the secret with which the program collects its session.
  secret_hash bytea not null,
  -- Proposed by the program.
  name text not null,
  -- Network address that the request came from, shown to the person.
  address text not null,
  status text not null default 'pending' check (status in ('pending', 'allowed', 'rejected', 'collected')),
  session_id text references session,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  check ((session_id is not null) = (status in ('allowed', 'collected')))
);
create index device_sign_in_expired on device_sign_in (expires_at);
