-- Reads one decision, for a statement that knows its id only as it runs. All of its columns are null if there is none.
--
-- Such a statement would be planned with every partition, most of them for each call; this plan is made once in a session, and finds
-- the one partition as it begins.
--
-- Locks: none.
create or replace function decision_read(p_id text) returns decision language plpgsql stable
set plan_cache_mode = force_generic_plan as $$
declare
  v_decision decision;
begin
  select d.* into v_decision from decision d where d.id = p_id;
  return v_decision;
end $$;
