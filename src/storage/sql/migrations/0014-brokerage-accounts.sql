-- Accounts of persons at the broker, and cash that moves between them and the firm's account there.

create table brokerage_account (
  account_id text primary key references account,
  -- `opening`: it is unknown whether the broker has the application.
  status text not null
    check (status in ('opening', 'pending', 'action_required', 'active', 'rejected', 'closed')),
  -- The account at the broker; null: no answer yet.
  provider_id text collate "C" unique,
  -- The application, sealed until the broker has answered; null afterwards, or erased.
  sealed bytea,
  created_at timestamptz not null,
  -- When the broker was last asked about it.
  checked_at timestamptz not null,
  check ((status = 'opening') = (provider_id is null)),
  check (sealed is null or status = 'opening')
);
create index brokerage_account_due on brokerage_account (checked_at) where status not in ('rejected', 'closed');

create table brokerage_transfer (
  -- The order's id, or an id of its own. The broker accepts it once.
  id text collate "C" primary key,
  account_id text not null references brokerage_account,
  -- The order that it pays for; null: cash that goes back to the firm's account.
  order_id text collate "C" references investing_order,
  cents bigint not null check (cents > 0),
  -- `new`: it is unknown whether the broker has it.
  status text not null check (status in ('new', 'pending', 'executed', 'refused')),
  provider_id text collate "C" unique,
  created_at timestamptz not null,
  check (order_id is null or order_id = id)
);
create unique index brokerage_transfer_back on brokerage_transfer (account_id)
  where order_id is null and status in ('new', 'pending');
create index brokerage_transfer_of_order on brokerage_transfer (order_id);
create index brokerage_transfer_of_account on brokerage_transfer (account_id);

-- Tax that the broker withheld; the amount is what was paid.
alter table dividend add column withheld bigint not null default 0 check (withheld >= 0);
