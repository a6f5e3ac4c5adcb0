-- Deposits on a chain from a sender that AML does not clear, or that could not be screened yet. They are not booked until released.
create table movement_review (
  id text collate "C" primary key,
  -- Id of the ledger transaction that a release posts: the identity of the chain, the transaction, the log's index in it.
  movement text not null unique,
  account_id text not null references account,
  chain text not null,
  -- A development chain may be replaced; what its predecessor held is gone.
  identity text not null,
  transaction_hash text not null,
  asset text not null,
  units bigint not null check (units > 0),
  sender text not null,
  -- False while the screening has not answered: it is asked again, and a clear sender releases the deposit.
  is_screened boolean not null,
  lists text[] not null check (cardinality(lists) > 0),
  status text not null check (status in ('open', 'released', 'blocked')),
  created_at timestamptz not null,
  -- Null where a list decided.
  decided_by text references account,
  reason text,
  decided_at timestamptz,
  check ((status = 'open') = (decided_at is null)),
  check (is_screened or status = 'open' or decided_by is not null)
);
create index movement_review_listed on movement_review (status, id);
create index movement_review_kept on movement_review (account_id, asset) where status <> 'released';
create index movement_review_unscreened on movement_review (id) where not is_screened and status = 'open';
