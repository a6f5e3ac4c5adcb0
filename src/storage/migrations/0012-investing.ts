/**
 * Investing: orders, what they filled, positions' costs, dividends. Quantities are billionths of a share, prices nano-dollars,
 * everything else cents. How many shares an account has is the ledger's to say (`equity:…` at the place `broker`).
 *
 * Locks: the end of an order takes the order's row, then its reservation, then its account (see 0005-budgets), then balances;
 * whoever holds an account's lock is alone with its cash and shares.
 */
export const investing = `
-- What of a reservation has gone already, where it goes in parts. Once it is settled, units are what went in all.
alter table reservation add column taken bigint not null default 0 check (taken >= 0 and taken <= units);

-- Moves a part of what a spend holds to its destination, once for each id. The last part settles it.
create function spend_take(
  p_decision text, p_id text, p_units bigint, p_destination text, p_at timestamptz, out verdict text
) language plpgsql as $$
#variable_conflict use_column
declare
  r reservation;
begin
  select * into r from reservation where decision_id = p_decision for update;
  if not found then
    verdict := 'not_reserved';
    return;
  elsif exists (select 1 from ledger_transaction where id = p_id) then
    verdict := 'already_taken';
    return;
  elsif r.status <> 'reserved' then
    verdict := 'already_' || r.status;
    return;
  elsif r.taken + p_units > r.units then
    verdict := 'too_much';
    return;
  end if;
  verdict := 'taken';
  update reservation set taken = r.taken + p_units,
    status = case when r.taken + p_units = r.units then 'settled' else status end,
    resolved_at = case when r.taken + p_units = r.units then p_at end
  where decision_id = p_decision;
  if left(p_destination, 5) = 'acct_' and p_destination collate "C" < r.held then
    insert into balance as b (account, asset, units) values (p_destination, r.asset, p_units)
    on conflict (account, asset) do update set units = b.units + excluded.units;
  end if;
  update balance set units = units - p_units where account = r.held and asset = r.asset;
  if left(p_destination, 5) = 'acct_' and p_destination collate "C" > r.held then
    insert into balance as b (account, asset, units) values (p_destination, r.asset, p_units)
    on conflict (account, asset) do update set units = b.units + excluded.units;
  end if;
  insert into ledger_transaction (id, kind, reference, at) values (p_id, 'take', p_decision, p_at);
  insert into posting (transaction_id, ordinal, source, destination, asset, units)
  values (p_id, 1, r.held, p_destination, r.asset, p_units);
end $$;

-- Settles (held to the destination) or releases (held back to its source; the budget of its day gets it back) what was not
-- taken, once. A spend of which a part went is settled by its release: it counts for that part.
create function spend_resolve(
  p_decision text, p_status text, p_destination text, p_at timestamptz, out verdict text
) language plpgsql as $$
#variable_conflict use_column
declare
  r reservation;
  v_destination text;
  v_kind text := case p_status when 'settled' then 'settle' else 'release' end;
  v_units bigint;
  v_unused bigint;
begin
  select * into r from reservation where decision_id = p_decision for update;
  if not found then
    verdict := 'not_reserved';
    return;
  elsif r.status <> 'reserved' then
    verdict := 'already_' || r.status;
    return;
  end if;

  verdict := p_status;
  v_units := r.units - r.taken;
  v_destination := case p_status when 'settled' then p_destination else r.source end;
  if p_status = 'settled' then
    update reservation set status = 'settled', resolved_at = p_at, taken = r.units where decision_id = p_decision;
  elsif r.taken = 0 then
    v_unused := r.usd_micros;
    update reservation set status = 'released', resolved_at = p_at where decision_id = p_decision;
  else
    v_unused := floor(r.usd_micros::numeric * v_units / r.units)::bigint;
    update reservation set status = 'settled', resolved_at = p_at, units = r.taken, usd_micros = r.usd_micros - v_unused
    where decision_id = p_decision;
  end if;
  if p_status = 'released' and (r.key_id is not null or r.windows is not null) then
    perform pg_advisory_xact_lock(hashtextextended(r.account_id, 0));
    if r.taken = 0 and r.windows is not null then
      perform outflow_return(r.account_id, r.windows, r.reserved_at);
    end if;
    update budget_usage set used_micros = used_micros - v_unused, count = count - (case r.taken when 0 then 1 else 0 end)
    where key_id = r.key_id and day = r.day;
  end if;

  -- Somebody else's money was never held, and what was held before it was reserved stays held.
  if r.source is null or v_destination = r.held then
    return;
  end if;

  if left(v_destination, 5) = 'acct_' and v_destination collate "C" < r.held then
    insert into balance as b (account, asset, units) values (v_destination, r.asset, v_units)
    on conflict (account, asset) do update set units = b.units + excluded.units;
  end if;
  update balance set units = units - v_units where account = r.held and asset = r.asset;
  if left(v_destination, 5) = 'acct_' and v_destination collate "C" > r.held then
    insert into balance as b (account, asset, units) values (v_destination, r.asset, v_units)
    on conflict (account, asset) do update set units = b.units + excluded.units;
  end if;

  insert into ledger_transaction (id, kind, reference, at) values (p_decision || ':' || v_kind, v_kind, p_decision, p_at);
  insert into posting (transaction_id, ordinal, source, destination, asset, units)
  values (p_decision || ':' || v_kind, 1, r.held, v_destination, r.asset, v_units);
end $$;

create table investing_order (
  id text collate "C" primary key,
  account_id text not null references account,
  -- That placed it; null: the account's owner.
  key_id text collate "C",
  decision_id text collate "C" not null unique references decision,
  client_order_id text,
  -- What the caller asked for, to tell a repeated client order id from a reused one.
  asked text not null,
  symbol text not null,
  side text not null check (side in ('buy', 'sell')),
  type text not null check (type in ('market', 'limit')),
  notional bigint not null check (notional > 0),
  -- What a sell gives up at most.
  qty bigint check (qty > 0),
  limit_price bigint check (limit_price > 0),
  -- What a share was worth when it was ordered: reports of the broker are measured by it.
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
-- Names are each caller's own: what one key calls an order tells another key nothing of it.
create unique index investing_order_named on investing_order (account_id, coalesce(key_id, ''), client_order_id)
  where client_order_id is not null;
create index investing_order_of_account on investing_order (account_id, id);
create index investing_order_open on investing_order (updated_at) where status in ('new', 'accepted', 'partially_filled');

-- Open orders of a key that was stopped, and of an account that was locked, are to be canceled. One whose row is locked is
-- being booked: the job that carries orders on finds it. Waiting for it here would turn the order of locks around.
create function orders_stop() returns trigger language plpgsql as $$
begin
  update investing_order set cancel_requested_at = now() where id in (
    select o.id from investing_order o join decision d on d.id = o.decision_id
    where o.status in ('new', 'accepted', 'partially_filled') and o.cancel_requested_at is null
      and o.account_id = coalesce(to_jsonb(new) ->> 'account_id', new.id)
      and (tg_table_name = 'account' or d.key_id = new.id)
    for update of o skip locked);
  return null;
end $$;
create trigger orders_stop after update of status on account
  for each row when (new.status = 'locked' and old.status <> 'locked') execute function orders_stop();
create trigger orders_stop after update of status on access_key
  for each row when (new.status <> 'active' and old.status = 'active') execute function orders_stop();

-- Every change of a position, in the order of its ids: what was bought counts above zero, what was sold below.
create table position_change (
  id text collate "C" primary key,
  account_id text not null references account,
  symbol text not null,
  qty bigint not null check (qty <> 0),
  -- Paid for a purchase, got for a sale.
  cash bigint not null check (cash >= 0),
  order_id text collate "C",
  at timestamptz not null
);
create index position_change_of_account on position_change (account_id, symbol, at);
create index position_change_of_symbol on position_change (symbol, at) include (account_id, qty);

-- What the shares that an account has cost it.
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
  -- Of several with one record date, such as a regular one and a special one.
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

-- An account's cash at the bank has a history: these find it without the postings of all other places.
create index posting_from_bank on posting (source) where split_part(source, ':', 2) = 'bank' and left(source, 5) = 'acct_';
create index posting_to_bank on posting (destination) where split_part(destination, ':', 2) = 'bank' and left(destination, 5) = 'acct_';

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
  -- Prices up to this second were looked at.
  matched_at timestamptz not null,
  filled_qty bigint not null default 0,
  -- Billionths of a share times nano-dollars.
  filled_value text not null default '0',
  filled_at timestamptz
);
`
