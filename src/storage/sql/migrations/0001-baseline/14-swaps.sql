-- Swaps: the quotes that were given.

create table swap_quote (
  id text collate "C" primary key,
  account_id text not null references account,
  -- The quote as its client got it.
  answer jsonb not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index swap_quote_expired on swap_quote (expires_at);
