-- Returns true while a spend is unfinished: money held, approval pending, or approved call not yet run. An idempotency key is
-- kept for as long.
--
-- Locks: none.
create or replace function spend_is_open(p_decision text, p_at timestamptz) returns boolean language plpgsql stable as $$
begin
  return exists (select 1 from reservation r where r.decision_id = p_decision and r.status = 'reserved')
    or exists (select 1 from approval a where a.decision_id = p_decision
      and (a.status = 'pending' and a.expires_at > p_at
        or a.status = 'approved' and a.answer is null and a.problem is null));
end $$;
