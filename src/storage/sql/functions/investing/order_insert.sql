-- Writes the rows of orders whose money or shares are reserved.
--
-- Arguments: the arrays are one order for each index. p_keys: the key that places it; null: the account's owner. p_orders has the
--   columns of the row.
-- Returns the decision of each row; none for a client order id that the caller used before.
-- Locks: none but new rows.
create or replace function order_insert(p_accounts text[], p_decisions text[], p_keys text[], p_orders jsonb[])
returns table (decision_id text) language plpgsql as $$
#variable_conflict use_column
begin
  return query
  insert into investing_order
    (id, account_id, key_id, decision_id, client_order_id, asked, symbol, side, type, notional, qty, limit_price, reference_price,
    status, submitted_at, updated_at)
  select o.id, a.account, a.key, a.decision, o.client_order_id, o.asked, o.symbol, o.side, o.type, o.notional, o.qty, o.limit_price,
    o.reference_price, 'new', o.submitted_at, o.submitted_at
  from unnest(p_accounts, p_decisions, p_keys, p_orders) as a (account, decision, key, "order")
  cross join lateral jsonb_to_record(a."order") as o (
    id text, client_order_id text, asked text, symbol text, side text, type text, notional bigint, qty bigint, limit_price bigint,
    reference_price bigint, submitted_at timestamptz)
  on conflict do nothing
  returning investing_order.decision_id;
end $$;
