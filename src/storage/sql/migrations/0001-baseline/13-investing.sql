-- Investing: orders, their fills, the cost of positions, and dividends. Quantities are billionths of a share, prices
-- nano-dollars, everything else cents. The number of shares that an account has is in the ledger ("equity:…" at "broker").

create table investing_order (
  id text collate "C" primary key,
  account_id text not null references account,
  -- The key that placed it; null: the account's owner.
  key_id text collate "C",
  decision_id text collate "C" not null unique references decision,
  client_order_id text,
  -- RFC 8785 JSON of the request, to tell a repeated client order id from a reused one.
  asked text not null,
  symbol text not null,
  side text not null check (side in ('buy', 'sell')),
  type text not null check (type in ('market', 'limit')),
  notional bigint not null check (notional > 0),
  -- The most that a sell gives up.
  qty bigint check (qty > 0),
  limit_price bigint check (limit_price > 0),
  -- The price when it was ordered, to judge the broker's reports by.
  reference_price bigint not null check (reference_price > 0),
  -- 'new' until the broker is known to have it.
  status text not null check (status in ('new', 'accepted', 'partially_filled', 'filled', 'canceled', 'rejected', 'expired')),
  reject_reason text,
  filled_qty bigint not null default 0 check (filled_qty >= 0),
  filled_cash bigint not null default 0 check (filled_cash >= 0),
  filled_avg_price bigint,
  cancel_requested_at timestamptz,
  submitted_at timestamptz not null,
  filled_at timestamptz,
  updated_at timestamptz not null,
  check ((side = 'sell') = (qty is not null)),
  check ((type = 'limit') = (limit_price is not null)),
  check (side = 'sell' or filled_cash <= notional),
  check (side = 'buy' or filled_qty <= qty)
);
-- Client order ids are each caller's own: one key learns nothing of another's.
create unique index investing_order_named on investing_order (account_id, coalesce(key_id, ''), client_order_id)
  where client_order_id is not null;
create index investing_order_of_account on investing_order (account_id, id);
create index investing_order_open on investing_order (updated_at) where status in ('new', 'accepted', 'partially_filled');

-- Every change of a position, in the order of ids.
create table position_change (
  id text collate "C" primary key,
  account_id text not null references account,
  symbol text not null,
  -- Above zero for a purchase, below zero for a sale.
  qty bigint not null check (qty <> 0),
  -- Paid for a purchase, received for a sale.
  cash bigint not null check (cash >= 0),
  order_id text collate "C",
  at timestamptz not null
);
create index position_change_of_account on position_change (account_id, symbol, at);
create index position_change_of_symbol on position_change (symbol, at) include (account_id, qty);

-- The cost of the shares that an account has.
create table position (
  account_id text not null references account,
  symbol text not null,
  cost bigint not null check (cost >= 0),
  primary key (account_id, symbol)
);

create table dividend (
  account_id text not null references account,
  symbol text not null,
  record_date date not null,
  -- Distinguishes dividends with one record date, such as a regular and a special one.
  ordinal int not null,
  pay_date date not null,
  qty bigint not null check (qty > 0),
  per_share bigint not null check (per_share > 0),
  amount bigint not null check (amount >= 0),
  status text not null check (status in ('announced', 'paid')),
  paid_at timestamptz,
  primary key (account_id, symbol, record_date, ordinal)
);
create index dividend_due on dividend (pay_date) where status = 'announced';

-- The sandbox broker's own book.
create table sandbox_order (
  id text collate "C" primary key,
  symbol text not null,
  side text not null,
  notional bigint not null,
  qty bigint,
  limit_price bigint,
  status text not null,
  placed_at timestamptz not null,
  expires_at timestamptz not null,
  -- Prices up to this moment have been matched.
  matched_at timestamptz not null,
  filled_qty bigint not null default 0,
  -- Billionths of a share times nano-dollars.
  filled_value text not null default '0',
  filled_at timestamptz
);
