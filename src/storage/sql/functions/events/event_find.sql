-- Finds the sequence of a published event of an account; null: it is none, or is no longer kept.
--
-- Events are published about in the order in which they were written, so bisection by sequence comes close to it: only a transaction
-- that was open for long lies further away.
--
-- Locks: none.
create or replace function event_find(p_account text, p_event text) returns bigint language plpgsql stable as $$
declare
  v_low bigint := 0;
  v_high bigint := (select h.last_sequence from event_head h where h.account_id = p_account);
  v_middle bigint;
  v_last bigint;
  v_reach int;
  v_found bigint;
begin
  if not exists (select from event e where e.id = p_event and e.account_id = p_account) then
    return null;
  end if;
  -- The last publication that begins with this event or an older one.
  while v_low < v_high loop
    v_middle := (v_low + v_high) / 2;
    select n.last_sequence into v_last
    from (
      select p.last_sequence, p.event_ids from event_publication p
      where p.account_id = p_account and p.last_sequence > v_middle
      order by p.last_sequence limit 1
    ) n
    where n.event_ids[1] <= p_event;
    if found then
      v_low := v_last;
    else
      v_high := v_middle;
    end if;
  end loop;
  foreach v_reach in array array[3, 100, null] loop
    select n.last_sequence - cardinality(n.event_ids) + array_position(n.event_ids, p_event) into v_found
    from (
      (select p.last_sequence, p.event_ids from event_publication p
        where p.account_id = p_account and p.last_sequence <= v_low order by p.last_sequence desc limit v_reach)
      union all
      (select p.last_sequence, p.event_ids from event_publication p
        where p.account_id = p_account and p.last_sequence > v_low order by p.last_sequence limit v_reach)
    ) n
    where p_event = any (n.event_ids);
    exit when found;
  end loop;
  return v_found;
end $$;
