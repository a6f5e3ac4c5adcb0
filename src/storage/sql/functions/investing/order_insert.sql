-- Writes the row of an order whose money or shares are reserved.
--
-- Arguments: p_key: the key that places it; null: the account's owner. p_order has the columns of the row.
-- Returns true; null if the caller used its client order id before, and nothing was written.
-- Locks: none but a new row.
create or replace function order_insert(p_account text, p_decision text, p_key text, p_order jsonb) returns jsonb language plpgsql as $$
declare
  v_at timestamptz := p_order->>'submitted_at';
begin
  insert into investing_order
    (id, account_id, key_id, decision_id, client_order_id, asked, symbol, side, type, notional, qty, limit_price, reference_price,
    status, submitted_at, updated_at)
  values (p_order->>'id', p_account, p_key, p_decision, p_order->>'client_order_id', p_order->>'asked', p_order->>'symbol',
    p_order->>'side', p_order->>'type', (p_order->>'notional')::bigint, (p_order->>'qty')::bigint, (p_order->>'limit_price')::bigint,
    (p_order->>'reference_price')::bigint, 'new', v_at, v_at)
  on conflict do nothing;
  return case when found then to_jsonb(true) end;
end $$;
