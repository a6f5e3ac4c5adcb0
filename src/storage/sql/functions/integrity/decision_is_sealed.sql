-- Whether a decision is in the chain; planned as decision_read is.
--
-- Locks: none.
create or replace function decision_is_sealed(p_id text) returns boolean language plpgsql stable
set plan_cache_mode = force_generic_plan as $$
begin
  return exists (select from decision_seal s where s.decision_id = p_id);
end $$;
