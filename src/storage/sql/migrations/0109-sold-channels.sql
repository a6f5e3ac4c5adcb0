-- Payment channels of x402 `batch-settlement` whose vouchers pay this gateway. `record` is what the seller's part of the protocol keeps of a
-- channel; null once it is closed. `charged` never falls: a voucher up to it was paid. Units of the token. `due_at`: when it is claimed next;
-- null while all is claimed.
create table sold_channel (
  id text primary key,
  chain text not null,
  record jsonb,
  charged bigint not null default 0 check (charged >= 0),
  claimed bigint not null default 0 check (claimed >= 0),
  due_at timestamptz,
  updated_at timestamptz not null
);
create index sold_channel_open on sold_channel (chain, updated_at) where record is not null;
create index sold_channel_due on sold_channel (chain, due_at) where due_at is not null;

-- What a chain's channels have paid out to the seller's address so far, as booked.
create table channel_income (
  chain text not null,
  token text not null,
  pay_to text not null,
  units bigint not null check (units >= 0),
  primary key (chain, token, pay_to)
);

alter table payment drop constraint payment_scheme_check;
alter table payment
  add constraint payment_scheme_check check (scheme in ('exact', 'upto', 'batch-settlement'));
