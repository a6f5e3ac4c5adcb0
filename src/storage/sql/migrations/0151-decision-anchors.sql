-- Heads of the decision chain, one for each UTC day, written into a transaction of the sponsor on a chain.
create table decision_anchor (
  day date primary key,
  -- The newest sealed decision made before the day's end: fixed before anything is sent.
  sequence bigint not null check (sequence > 0),
  hash text not null check (hash ~ '^[0-9a-f]{64}$'),
  chain text not null,
  -- prepared: nothing may have been sent. sent: one of the transactions may be on the chain. missed: too late to be sent again.
  state text not null check (state in ('prepared', 'sent', 'confirmed', 'missed')),
  sender text,
  -- Every transaction that may have been broadcast, recorded before it was.
  transaction_hashes text[] not null default '{}',
  -- The one that is on the chain.
  transaction_hash text,
  -- The attempt that may send, and until when no other may begin.
  attempt text,
  attempt_until timestamptz,
  prepared_at timestamptz not null,
  sent_at timestamptz,
  confirmed_at timestamptz,
  check ((state = 'confirmed') = (transaction_hash is not null and confirmed_at is not null))
);
create index decision_anchor_open on decision_anchor (chain, day) where state in ('prepared', 'sent');
