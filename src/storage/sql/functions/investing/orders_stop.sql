-- Requests the cancellation of the open orders of a key that stops being active, and of the keys below it, and of every order of an account that is locked.
-- Skips an order whose row is locked, because it is being booked: the job that carries orders on finds it. To wait for it here
-- would reverse the lock order.
--
-- Locks: the orders' rows that are free.
create or replace function orders_stop() returns trigger language plpgsql as $$
begin
  update investing_order set cancel_requested_at = now() where id in (
    select o.id from investing_order o join decision d on d.id = o.decision_id
    where o.status in ('new', 'accepted', 'partially_filled') and o.cancel_requested_at is null
      and o.account_id = coalesce(to_jsonb(new) ->> 'account_id', new.id)
      and (tg_table_name = 'account' or new.id = any (key_path(d.key_id)))
    for update of o skip locked);
  return null;
end $$;

create or replace trigger orders_stop after update of status on account
  for each row when (new.status = 'locked' and old.status <> 'locked') execute function orders_stop();
create or replace trigger orders_stop after update of status on access_key
  for each row when (new.status <> 'active' and old.status = 'active') execute function orders_stop();
