-- Claims endpoints with a delivery that is due, for one gateway until p_until, the longest due first.
--
-- Locks: the rows of the endpoints that are free.
create or replace function webhook_claim(p_limit int, p_at timestamptz, p_until timestamptz)
returns setof webhook_endpoint language plpgsql as $$
begin
  return query
  with free as materialized (
    select w.id from webhook_endpoint w
    where w.status = 'active' and w.due_at <= p_at and w.busy_until <= p_at
    order by w.due_at limit p_limit
    for update skip locked
  )
  update webhook_endpoint e set busy_until = p_until from free
  where e.id = free.id
  returning e.*;
end $$;
