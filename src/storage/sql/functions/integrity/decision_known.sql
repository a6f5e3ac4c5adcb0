-- What histories and statements show of a decision, which may have left by `bursar archive` since; planned as decision_read is. All of
-- its columns are null if there is none, or it was refused and has left.
--
-- Locks: none.
create or replace function decision_known(p_id text) returns archived_decision language plpgsql stable
set plan_cache_mode = force_generic_plan as $$
declare
  v_decision archived_decision;
begin
  select d.id, d.at, d.account_id, d.key_id, d.policy_version, d.policy_hash, d.operation, d.facts, d.verdict into v_decision
  from decision d where d.id = p_id;
  if not found then
    select d.* into v_decision from archived_decision d where d.id = p_id;
  end if;
  return v_decision;
end $$;
