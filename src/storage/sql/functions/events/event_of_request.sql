-- Writes the event of a request for money that is made, is paid for, expires or is canceled.
--
-- Locks: none.
create or replace function event_of_request() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, new.key_id,
    case
      when tg_op = 'INSERT' then 'request.created'
      when new.received_units < old.received_units then 'request.reversed'
      when new.status <> old.status then 'request.' || new.status
      when new.status = 'paid' then 'request.overpaid'
      when new.status in ('expired', 'canceled') then 'request.paid_late'
      else 'request.partly_paid'
    end,
    'request', new.id,
    jsonb_build_object('status', new.status, 'asset', new.asset, 'units', new.units::text, 'receivedUnits', new.received_units::text,
      'expiresAt', new.expires_at),
    new.updated_at);
  return null;
end $$;

create or replace trigger event_of_insert after insert on payment_request
  for each row execute function event_of_request();
create or replace trigger event_of_change after update on payment_request
  for each row when (new.status <> old.status or new.received_units <> old.received_units) execute function event_of_request();
