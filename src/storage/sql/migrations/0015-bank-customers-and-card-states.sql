-- Customers of the banking provider: persons who verify themselves and accept its terms on its own pages.

create table bank_customer (
  account_id text primary key references account,
  -- The verification at the provider, which shows the links to its pages.
  link_id text collate "C" not null unique,
  -- The customer at the provider; null: not known yet.
  customer_id text collate "C" unique,
  status text not null check (status in ('open', 'approved', 'rejected', 'paused')),
  created_at timestamptz not null,
  checked_at timestamptz not null,
  check (status <> 'approved' or customer_id is not null)
);

-- What the card processor was told: it declines on its own while the gateway cannot be reached.
alter table card
  add column sent_status text not null default 'active' check (sent_status in ('active', 'frozen', 'canceled')),
  -- When the processor was last told; null: never.
  add column status_tried_at timestamptz;
create index card_status_unsent on card (status_tried_at) where status <> sent_status;
