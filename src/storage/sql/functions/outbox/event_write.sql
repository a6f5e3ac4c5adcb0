-- Writes an event in the transaction of its effect: the only writer of events. Nobody sees it before events_publish has numbered it.
--
-- The id is of the time at which the event is written, so that new rows lie together and old ones can leave together. p_at is the
-- effect's, and may lie far back.
--
-- Locks: none.
create or replace function event_write(
  p_account text, p_agent text, p_type text, p_object_kind text, p_object text, p_data jsonb, p_at timestamptz
) returns void language plpgsql as $$
declare
  v_id text := event_id(clock_timestamp());
begin
  insert into event (id, account_id, agent_id, type, object_kind, object_id, data, at)
  values (v_id, p_account, p_agent, p_type, p_object_kind, p_object, p_data, p_at);
  insert into event_outbox (event_id) values (v_id);
end $$;
