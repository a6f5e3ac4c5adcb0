-- One worker sends the messages of a subscription, and rests after a failure.

alter table push_subscription
  -- A gateway sends to it until then; null: none does.
  add column busy_until timestamptz,
  -- Nothing is sent to it before, because attempts failed; null: its last attempt did not.
  add column paused_until timestamptz,
  -- Failed attempts since the last message that was taken.
  add column failures int not null default 0;
