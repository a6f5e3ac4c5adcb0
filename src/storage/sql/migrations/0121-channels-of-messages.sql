-- Where an owner is told of requests for approval and of what needs attention, besides mails and browsers: chats, and mail at once.
create table notification_channel (
  id text collate "C" primary key,
  account_id text not null references account,
  type text not null check (type in ('slack', 'telegram', 'email')),
  -- The owner's name for it.
  name text,
  -- What its owner recognizes it by; no secret.
  label text not null,
  -- The webhook's URL, or the bot's token and the chat. Null for mail.
  sealed bytea,
  -- Of the account's own address, for mail: the channel ends with the address.
  destination_hash text references login_destination on delete cascade,
  created_at timestamptz not null,
  -- A gateway sends to it until then; null: none does.
  busy_until timestamptz,
  -- Nothing is sent to it before.
  paused_until timestamptz,
  -- Failed attempts since the last message that was taken, the first of them, and the code of the last.
  failures int not null default 0,
  failing_since timestamptz,
  problem text,
  sent_at timestamptz,
  check ((type = 'email') = (destination_hash is not null)),
  check ((type = 'email') = (sealed is null))
);
create index notification_channel_of_account on notification_channel (account_id, id);
create unique index notification_channel_of_address on notification_channel (destination_hash) where destination_hash is not null;

-- One row for each thing to tell and channel, kept with its text as the owner's inbox, also when the channel is gone.
create table owner_message (
  id text collate "C" primary key,
  account_id text collate "C" not null,
  channel_id text collate "C" not null,
  channel_type text not null,
  -- The event, or the budget and its period: a channel is told once.
  about text not null,
  type text not null,
  object_id text not null,
  data jsonb not null,
  at timestamptz not null,
  -- Null: not written yet.
  title text,
  body text,
  path text,
  -- A gateway sends it, or its next attempt is waited for, until then. Null: it was sent, or given up.
  held_until timestamptz,
  tries int not null default 0,
  -- A failed attempt after that is the last.
  expires_at timestamptz not null,
  sent_at timestamptz,
  check (sent_at is null or held_until is null)
) with (fillfactor = 70);
create unique index owner_message_once on owner_message (channel_id, about);
create index owner_message_due on owner_message (channel_id, held_until) where held_until is not null;
create index owner_message_sent on owner_message (channel_id, sent_at) where sent_at is not null;
create index owner_message_of_account on owner_message (account_id, id);
create index owner_message_old on owner_message (at);
