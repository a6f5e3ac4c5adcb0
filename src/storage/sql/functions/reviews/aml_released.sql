-- Returns true if a released review allows a spend: once within a day, and again if that spend was released.
--
-- Locks: none. The caller holds the account.
create or replace function aml_released(p_account text, p_review text, p_at timestamptz) returns boolean language plpgsql volatile as $$
begin
  return exists (
    select 1 from aml_review r
    where r.id = p_review and r.account_id = p_account and r.status = 'released'
      and r.decided_at > p_at - interval '24 hours'
      and (r.used_by is null or exists (
        select 1 from reservation v where v.decision_id = r.used_by and v.status = 'released')));
end $$;
