-- Books what an order has filled since the last time, and its new state, in one call, if the order still is as the caller read it: no
-- lock is needed in between.
--
-- Arguments: p_was_status, p_was_filled_qty, p_was_filled_cash and p_was_canceling are what the caller read.
--   p_given, what leaves the hold for p_broker, and p_got, what the person's p_destination receives, in smallest units of p_asset:
--   either may be 0, and both are for an order that only changes its state. p_qty and p_cash: the change of the position.
--   p_ends: the rest of the hold is released.
-- Verdicts: booked; changed, where nothing was booked because the order is another than read, or has an open alarm.
-- Raises where the hold does not have p_given, or the part is booked already, which undoes all of it.
-- Locks: the order's row; the reservation; the account; balances.
create or replace function order_book(
  p_was_status text, p_was_filled_qty bigint, p_was_filled_cash bigint, p_was_canceling boolean,
  p_order text, p_decision text, p_account text, p_at timestamptz, p_part text, p_broker text, p_given bigint,
  p_destination text, p_asset text, p_got bigint, p_change text, p_symbol text, p_qty bigint, p_cash bigint, p_ends boolean,
  p_status text, p_reject_reason text, p_filled_qty bigint, p_filled_cash bigint, p_filled_avg_price bigint,
  p_filled_at timestamptz, out verdict text
) language plpgsql as $$
#variable_conflict use_column
declare
  v_left bigint;
begin
  perform from investing_order
  where id = p_order and status = p_was_status and filled_qty = p_was_filled_qty and filled_cash = p_was_filled_cash
    and (cancel_requested_at is not null) = p_was_canceling
  for update;
  if not found or exists (
    select from alarm where domain = 'investing' and object_id = p_order and resolved_at is null
  ) then
    verdict := 'changed';
    return;
  end if;
  select units - taken - p_given into v_left from reservation where decision_id = p_decision for update;
  perform pg_advisory_xact_lock(hashtextextended(p_account, 0));
  if p_given > 0 then
    select t.verdict into verdict from spend_take(p_decision, p_part || ':given', p_given, p_broker, p_at) t;
    if verdict <> 'taken' then
      raise exception 'a fill of % cannot be booked: %', p_order, verdict;
    end if;
  end if;
  if p_got > 0 then
    perform ledger_book(array[p_part || ':got'], array[1], array['fill'], array[p_order], array[p_at], array[p_broker], array[p_destination],
      array[p_asset], array[p_got]);
  end if;
  if p_qty <> 0 then
    perform position_book(p_change, p_account, p_symbol, p_qty, p_cash, p_order, p_at);
  end if;
  if p_ends and v_left > 0 then
    perform spend_resolve(p_decision, 'released', null, p_at);
  end if;
  update investing_order set status = p_status, reject_reason = p_reject_reason, filled_qty = p_filled_qty,
    filled_cash = p_filled_cash, filled_avg_price = p_filled_avg_price, filled_at = p_filled_at, updated_at = p_at
  where id = p_order;
  verdict := 'booked';
end $$;
