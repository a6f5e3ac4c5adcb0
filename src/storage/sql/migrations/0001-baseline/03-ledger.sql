-- The ledger: transactions of postings, and the balances of owners' accounts. ledger_post writes all three. An owner's place is
-- an account such as "acct_1:bank:available"; every other name is a system account, whose balance is a sum when it is needed.
-- Transactions and postings are append-only: see functions/integrity/refuse_change.sql.

create table ledger_transaction (
  id text collate "C" primary key,
  kind text not null,
  reference text not null,
  at timestamptz not null
);

create table posting (
  transaction_id text collate "C" not null,
  ordinal int not null,
  source text collate "C" not null,
  destination text collate "C" not null,
  asset text collate "C" not null,
  units bigint not null check (units > 0),
  primary key (transaction_id, ordinal),
  check (source <> destination)
);
-- For the balances of system accounts. Owners' postings, which are most of them, are not in these indexes.
create index posting_from_system on posting (source, asset) include (units) where left(source, 5) <> 'acct_';
create index posting_to_system on posting (destination, asset) include (units) where left(destination, 5) <> 'acct_';
-- For the history of an account's cash at the bank, without the postings of all other places.
create index posting_from_bank on posting (source) where split_part(source, ':', 2) = 'bank' and left(source, 5) = 'acct_';
create index posting_to_bank on posting (destination) where split_part(destination, ':', 2) = 'bank' and left(destination, 5) = 'acct_';

-- For an account's activity: money that came in, and money that left without being held before. Spends are in neither.
create index posting_arrived on posting (destination) where left(source, 9) = 'external:' and left(destination, 5) = 'acct_';
create index posting_withdrawn on posting (source)
  where left(source, 5) = 'acct_' and right(source, 5) <> ':held' and left(destination, 9) = 'external:';

create table balance (
  account text collate "C" not null check (left(account, 5) = 'acct_'),
  asset text collate "C" not null,
  units bigint not null check (units >= 0),
  primary key (account, asset)
) with (fillfactor = 50);
