-- Books what an order has filled, as order_book does, if the order still is as the caller read it: no lock is needed in between.
--
-- Arguments: p_was_status, p_was_filled_qty, p_was_filled_cash and p_was_canceling are what the caller read. The others are those of
--   order_book.
-- Verdicts: booked; changed, where nothing was booked because the order is another than read, or has an open alarm.
-- Raises where order_book returns anything else, which undoes all of it.
-- Locks: the order's row, then those of order_book.
create or replace function order_book_unchanged(
  p_was_status text, p_was_filled_qty bigint, p_was_filled_cash bigint, p_was_canceling boolean,
  p_order text, p_decision text, p_account text, p_at timestamptz, p_part text, p_broker text, p_given bigint,
  p_destination text, p_asset text, p_got bigint, p_change text, p_symbol text, p_qty bigint, p_cash bigint, p_ends boolean,
  p_status text, p_reject_reason text, p_filled_qty bigint, p_filled_cash bigint, p_filled_avg_price bigint,
  p_filled_at timestamptz, out verdict text
) language plpgsql as $$
#variable_conflict use_column
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
  verdict := order_book(
    p_order, p_decision, p_account, p_at, p_part, p_broker, p_given, p_destination, p_asset, p_got, p_change, p_symbol, p_qty,
    p_cash, p_ends, p_status, p_reject_reason, p_filled_qty, p_filled_cash, p_filled_avg_price, p_filled_at);
  if verdict <> 'booked' then
    raise exception 'a fill of % cannot be booked: %', p_order, verdict;
  end if;
end $$;
