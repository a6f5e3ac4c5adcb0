-- Deposits that AML does not let through: they are not credited until an administrator releases them.
create table deposit_review (
  id text collate "C" primary key,
  deposit_id text collate "C" not null unique references deposit,
  account_id text not null references account,
  -- Money as the bank reported it: what is converted and credited after a release.
  asset text not null,
  units bigint not null check (units > 0),
  -- The sender, sealed.
  sealed bytea not null,
  lists text[] not null check (cardinality(lists) > 0),
  status text not null check (status in ('open', 'released', 'blocked')),
  created_at timestamptz not null,
  -- Null for a deposit that a list blocks: no person decides it.
  decided_by text references account,
  reason text,
  decided_at timestamptz,
  check ((status = 'open') = (decided_at is null)),
  check (status <> 'released' or decided_by is not null)
);
create index deposit_review_listed on deposit_review (status, id);
