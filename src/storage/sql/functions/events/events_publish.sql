-- Moves events of committed transactions from the outbox to the readers, and numbers them by account: what an account's readers have
-- seen stays the beginning of what they will see. Returns the accounts with new events, and how many events there were.
--
-- Arguments: p_limit is the number of events that are moved at most.
-- Locks: the publishers' own, before the read, so that the read includes what the last publisher left. Waits for nothing under it.
create or replace function events_publish(p_limit int)
returns table (account_id text, last_sequence bigint, moved bigint) language plpgsql as $$
#variable_conflict use_column
begin
  perform pg_advisory_xact_lock(hashtext('bursar events'), 0);
  return query
  with moved as (
    delete from event_outbox o
    where o.position in (select p.position from event_outbox p order by p.position limit p_limit)
    returning o.*
  ), head as (
    insert into event_head as h (account_id, last_sequence)
    select m.account_id, count(*) from moved m group by m.account_id
    on conflict (account_id) do update set last_sequence = h.last_sequence + excluded.last_sequence
    returning h.account_id, h.last_sequence
  ), published as (
    insert into event (account_id, sequence, id, agent_id, type, object_kind, object_id, data, at)
    select m.account_id, h.last_sequence + 1 - row_number() over (partition by m.account_id order by m.position desc), event_id(m.at),
      m.agent_id, m.type, m.object_kind, m.object_id, m.data, m.at
    from moved m join head h on h.account_id = m.account_id
    returning event.id
  )
  select h.account_id, h.last_sequence, (select count(*) from published) from head h;
end $$;
