-- Pauses the key of a spend that a limit of equal spends has refused, and asks its owner whether it may go on: an approval that resumes
-- it. `repeat_forget` forgets the run then. A key that has made none of the run, which others below the same key have, is only refused.
--
-- Locks: the key's row. The caller holds the account.
create or replace function repeat_stop(q spend_request) returns void language plpgsql as $$
begin
  update access_key k set status = 'paused', paused_at = q.at
  where k.id = q.key and k.status = 'active' and exists (
    select from repeat_run r where r.key_id = q.key and r.spend = repeat_name(q.facts) and r.until > q.at);
  if not found then
    return;
  end if;
  insert into approval (id, account_id, key_id, decision_id, operation, input, fingerprint, violations, status, created_at, expires_at)
  values ('appr_' || substr(q.decision, 5), q.account, q.key, q.decision, 'agents.resume',
    jsonb_build_object('id', q.key, 'status', 'active')::text, 'agents.resume', '[]', 'pending', q.at, q.at + interval '24 hours');
end $$;
