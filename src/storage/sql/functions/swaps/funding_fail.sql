-- Ends the payment whose money does not arrive, once: it is not made, and what it holds is available again. What is on its way arrives
-- as the account's own.
--
-- Arguments: p_code: of the payment's transfer.
-- Returns whether this call ended it.
-- Locks: the funding; then those of spend_resolve; the transfer.
create or replace function funding_fail(p_funding text, p_failure text, p_code text, p_at timestamptz) returns boolean
language plpgsql as $$
declare
  f funding;
begin
  select * into f from funding where id = p_funding for update;
  if f.state is distinct from 'moving' then
    return false;
  end if;
  update funding set state = 'failed', failure = p_failure, updated_at = p_at where id = p_funding;
  perform spend_resolve(f.decision_id, 'released', null, p_at);
  update transfer set state = 'failed', failure = p_failure, failure_code = p_code, updated_at = p_at
  where decision_id = f.decision_id and funding_id is null and state = 'funding';
  return true;
end $$;
