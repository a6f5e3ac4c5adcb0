-- Payment channels of x402 `batch-settlement` whose vouchers pay this gateway. `record` is what the seller's part of the protocol keeps of a
-- channel. Units of the token. `due_at`: when its claims are looked at next; null while all is claimed for good.
create table sold_channel (
  id text primary key,
  chain text not null,
  record jsonb,
  is_closed boolean not null default false,
  charged bigint not null default 0 check (charged >= 0),
  due_at timestamptz,
  updated_at timestamptz not null
);
create index sold_channel_of_chain on sold_channel (chain, updated_at);
create index sold_channel_due on sold_channel (chain, due_at) where due_at is not null;

-- The vouchers that were charged: each by its channel and by what the channel has paid with it in all.
create table sold_voucher (
  channel_id text not null references sold_channel,
  cumulative bigint not null check (cumulative > 0),
  primary key (channel_id, cumulative)
);

-- What a chain's channels have paid out to the seller's address so far, as booked. `identity` tells two runs of a development chain apart.
create table channel_income (
  identity text not null,
  token text not null,
  pay_to text not null,
  units bigint not null check (units >= 0),
  entries int not null default 0,
  primary key (identity, token, pay_to)
);

alter table payment drop constraint payment_scheme_check;
alter table payment
  add constraint payment_scheme_check check (scheme in ('exact', 'upto', 'batch-settlement'));
