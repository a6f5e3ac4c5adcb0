-- Returns true for Travel Rule data not yet attached to a transfer, or attached to one that was released; a released reservation
-- never stands again.
--
-- Locks: none.
create or replace function travel_rule_is_unused(p_decision text) returns boolean language sql stable as $$
  select p_decision is null or exists (
    select 1 from reservation r where r.decision_id = p_decision and r.status = 'released')
$$;
