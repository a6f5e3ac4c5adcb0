-- Recoveries of accounts that an administrator locked. Their persons have proved themselves, and nothing else has happened.
create table recovery_review (
  id text collate "C" primary key,
  account_id text not null references account,
  -- What was shown: a code to an address, a passkey, or the id of a guest, who has neither.
  proofs text[] not null check (cardinality(proofs) > 0 and proofs <@ array['code', 'passkey', 'guest']),
  status text not null check (status in ('open', 'released', 'blocked')),
  created_at timestamptz not null,
  decided_by text references account,
  reason text,
  decided_at timestamptz,
  check ((status = 'open') = (decided_at is null)),
  check ((status = 'open') = (decided_by is null))
);
create index recovery_review_listed on recovery_review (status, id);
create index recovery_review_of_account on recovery_review (account_id, created_at);
-- Asking again while one waits adds none.
create unique index recovery_review_open on recovery_review (account_id) where status = 'open';
