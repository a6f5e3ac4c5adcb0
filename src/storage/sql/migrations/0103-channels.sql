-- Payment channels (x402 `batch-settlement`): a deposit for one seller, from which a key buys by vouchers. A channel's money is in the
-- purse of the same id in the books, and at the purse's address or in the contract on the chain. Units are smallest units.
create table channel (
  id text collate "C" primary key references purse,
  account_id text not null references account,
  key_id text collate "C" not null,
  origin text not null,
  chain text not null,
  network text not null,
  asset text not null,
  token text not null check (token = lower(token)),
  pay_to text not null check (pay_to = lower(pay_to)),
  -- Terms of the seller: who signs for it, and the seconds in which it may still claim once the channel is left alone.
  receiver_authorizer text not null check (receiver_authorizer = lower(receiver_authorizer)),
  withdraw_delay int not null check (withdraw_delay > 0),
  -- Its id in the contract.
  hash text not null unique,
  -- What the contract has shown to be deposited.
  deposit bigint not null default 0 check (deposit >= 0),
  -- Cumulative amounts: the highest voucher that was signed; what settled purchases add up to; what the seller has claimed at its end.
  signed bigint not null default 0 check (signed >= 0),
  booked bigint not null default 0 check (booked >= 0),
  claimed bigint not null default 0 check (claimed >= 0),
  -- Booked, never claimed, and back at its end.
  returned bigint not null default 0 check (returned >= 0),
  status text not null default 'open' check (status in ('open', 'closing', 'exiting', 'closed')),
  -- The purchase that is presented to the seller: one at a time, for as long as that is claimed.
  purchase_id text collate "C",
  -- A deposit on its way: its number, its units, and the first second in which it is no longer taken.
  deposits int not null default 0,
  deposit_units bigint check (deposit_units > 0),
  deposit_until timestamptz,
  -- Transactions of the address so far.
  exits int not null default 0,
  closing_at timestamptz,
  asked_at timestamptz,
  withdrawable_at timestamptz,
  -- A process works on its end until then.
  busy_until timestamptz not null default 'epoch',
  opened_at timestamptz not null,
  last_used_at timestamptz not null,
  updated_at timestamptz not null,
  check ((deposit_units is null) = (deposit_until is null))
) with (fillfactor = 80);
create unique index channel_open on channel (key_id, origin, pay_to, asset, chain) where status = 'open';
create index channel_of_account on channel (account_id, id);
create index channel_unclosed on channel (busy_until) where status <> 'closed';

-- A purchase by voucher has no transaction of its own: it is settled by the seller's word, and by what is claimed at the channel's end.
alter table purchase drop constraint purchase_scheme_check;
alter table purchase add check (scheme in ('exact', 'upto', 'batch-settlement'));
alter table purchase drop constraint purchase_check;
alter table purchase add check (
  scheme = 'batch-settlement' or (state = 'settled') = (transaction_hash is not null) or reversed_at is not null);
-- The cumulative amount of its voucher; null: none is signed.
alter table purchase add column cumulative bigint check (cumulative > 0);
create index purchase_of_channel on purchase (purse_id, cumulative) where scheme = 'batch-settlement' and state in ('reserved', 'signed');
