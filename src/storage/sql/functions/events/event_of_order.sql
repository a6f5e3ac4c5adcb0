-- Writes the event of an order that the broker has, or that has ended. A rejected order is canceled by the broker.
--
-- Locks: none.
create or replace function event_of_order() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, new.key_id,
    case new.status when 'filled' then 'order.filled' when 'expired' then 'order.expired'
      when 'canceled' then 'order.canceled' when 'rejected' then 'order.canceled' else 'order.accepted' end,
    'order', new.id,
    jsonb_build_object('decisionId', new.decision_id, 'symbol', new.symbol, 'side', new.side, 'status', new.status, 'asset', 'USD',
      'units', new.notional::text, 'filledUnits', new.filled_cash::text),
    new.updated_at);
  return null;
end $$;

create or replace trigger event_of_change after update of status on investing_order
  for each row when (new.status <> old.status and (new.status <> 'partially_filled' or old.status = 'new'))
  execute function event_of_order();
