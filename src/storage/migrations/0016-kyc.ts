/** Identity reviews: what a person said of themselves lies sealed, and can be erased; the verdict stays. */
export const kyc = `
create table kyc_application (
  id text collate "C" primary key,
  account_id text not null references account,
  level text not null check (level in ('basic', 'full')),
  status text not null check (status in ('init', 'pending', 'approved', 'retry', 'rejected')),
  labels text[] not null,
  -- What was said so far, sealed; null once it was erased.
  sealed bytea,
  -- The provider's name of it, once it has it.
  reference text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  reviewed_at timestamptz
);
create unique index kyc_application_open on kyc_application (account_id, level) where status <> 'retry';
create index kyc_application_pending on kyc_application (updated_at) where status = 'pending';
`
