-- Records a change of a position that the ledger has booked in the same transaction. A purchase adds its cost; a sale removes its
-- proportional cost, rounded down; the last sale removes the rest.
--
-- Arguments: p_qty in billionths of a share, below zero for a sale; p_cash in cents, paid or received
-- Locks: the position's row. The caller holds the account, or the account is new.
create or replace function position_book(
  p_id text, p_account text, p_symbol text, p_qty bigint, p_cash bigint, p_order text, p_at timestamptz
) returns void language plpgsql as $$
declare
  v_before bigint;
  v_left bigint;
  v_cost bigint;
begin
  insert into position_change (id, account_id, symbol, qty, cash, order_id, at)
  values (p_id, p_account, p_symbol, p_qty, p_cash, p_order, p_at);

  if p_qty > 0 then
    insert into position as p (account_id, symbol, cost) values (p_account, p_symbol, p_cash)
    on conflict (account_id, symbol) do update set cost = p.cost + excluded.cost;
    return;
  end if;
  select coalesce(max(p.cost), 0) into v_before from position p where p.account_id = p_account and p.symbol = p_symbol;
  select coalesce(sum(b.units), 0) into v_left from balance b
  where b.account in (p_account || ':broker:available', p_account || ':broker:held') and b.asset = 'equity:' || p_symbol;
  v_cost := v_before - case v_left when 0 then v_before else div(v_before::numeric * -p_qty, v_left::numeric - p_qty) end;
  insert into position (account_id, symbol, cost) values (p_account, p_symbol, v_cost)
  on conflict (account_id, symbol) do update set cost = excluded.cost;
end $$;
