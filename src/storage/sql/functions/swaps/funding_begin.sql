-- Writes what moves the money of a payment to the payment's chain, in the transaction that has held it: the funding, the transfer that
-- burns, and its order. A process that ends now leaves rows that jobs go on with.
--
-- Arguments: p_funding has the columns of the funding's row; burn: the transfer, see transfer_insert; swap: the order's columns.
-- Returns the wallet from which the burn is sent.
-- Locks: none but new rows.
create or replace function funding_begin(p_account text, p_decision text, p_key text, p_funding jsonb) returns jsonb
language plpgsql as $$
declare
  v_id text := p_funding->>'id';
  v_chain text := p_funding->>'chain';
  v_from text := p_funding->>'from_chain';
  -- Of the clock: the decision's is of the calendar.
  v_at timestamptz := (p_funding->'burn'->>'at')::timestamptz;
  v_written jsonb;
begin
  insert into funding (id, decision_id, account_id, chain, from_chain, asset, units, needed, state, wait_until, created_at, updated_at)
  values (v_id, p_decision, p_account, v_chain, v_from, p_funding->>'asset', (p_funding->>'wanted')::bigint,
    (p_funding->>'needed')::bigint, 'moving', (p_funding->>'wait_until')::timestamptz, v_at, v_at);
  insert into swap_order (id, account_id, key_id, decision_id, quote_id, chain, sell, units, buy, min_received, expected, fee_micros, route,
    state, created_at, updated_at, to_chain, funding_id)
  select s.id, p_account, p_key, p_decision, s.id, v_from, p_funding->>'asset', s.units, p_funding->>'asset', s.min_received, s.expected,
    s.fee_micros, s.route, 'submitted', v_at, v_at, v_chain, v_id
  from jsonb_to_record(p_funding->'swap') as s (id text, units bigint, min_received bigint, expected bigint, fee_micros bigint, route text);
  select t.written into strict v_written from transfer_insert(array[p_account], array[p_decision], array[p_funding->'burn']) t;
  return v_written;
end $$;
