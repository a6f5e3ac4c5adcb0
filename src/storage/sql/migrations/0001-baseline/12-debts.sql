-- Debts: what the gateway has paid for an owner who lacked the money. A debt is a row here and a posting from
-- "receivable:debts", whose balance is minus the sum of all open debts.

create table debt (
  id text collate "C" primary key,
  account_id text not null references account,
  kind text not null check (kind in ('card', 'settlement', 'deposit')),
  -- The id of the card authorization, card settlement or deposit that caused it.
  reference text collate "C" not null,
  -- The card whose priority gives the order in which the owner's money is collected.
  card_id text collate "C",
  asset text not null,
  units bigint not null check (units > 0),
  owed bigint not null check (owed >= 0 and owed <= units),
  -- The system account that the gateway has paid.
  paid_to text not null,
  created_at timestamptz not null,
  tried_at timestamptz not null,
  paid_at timestamptz,
  check ((owed = 0) = (paid_at is not null))
) with (fillfactor = 80);
create index debt_of_account on debt (account_id) where owed > 0;
create index debt_due on debt (tried_at) where owed > 0;
