-- Mails to owners about events of their accounts.

-- How the owner is told of requests for approval. Other mails are always sent.
alter table account add column approval_mails text not null default 'immediately'
  check (approval_mails in ('immediately', 'daily', 'off'));

-- One row for each event and e-mail address. events_publish writes it; one mail may tell of several events of one type.
create table owner_mail (
  destination_hash text not null references login_destination on delete cascade,
  -- Of the event, whose account and sequence name it: an event is mailed once.
  sequence bigint not null,
  account_id text collate "C" not null,
  type text not null,
  object_id text not null,
  data jsonb not null,
  at timestamptz not null,
  -- From then on it may be sent.
  due_at timestamptz not null,
  -- A gateway sends it, or its next attempt is waited for, until then.
  held_until timestamptz not null,
  tries int not null default 0,
  -- A failed attempt after that is the last.
  expires_at timestamptz not null,
  -- The same for all events of one mail; null: not sent yet.
  sent_at timestamptz,
  primary key (destination_hash, sequence)
) with (fillfactor = 70);
create index owner_mail_due on owner_mail (due_at) where sent_at is null;
create index owner_mail_expired on owner_mail (expires_at);
