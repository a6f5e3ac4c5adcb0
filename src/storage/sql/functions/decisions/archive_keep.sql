-- Keeps what histories show of the next decisions before a month's end that something still refers to. Returns the last of the decisions
-- that it has read; null when there are none. Repeating it changes nothing.
--
-- Locks: none.
create or replace function archive_keep(p_after text, p_end text, p_limit int) returns text language plpgsql as $$
declare
  v_ids text[] := array(select d.id from decision d where d.id > p_after and d.id < p_end order by d.id limit p_limit);
begin
  insert into archived_decision (id, at, account_id, key_id, policy_version, policy_hash, operation, facts, verdict)
  select d.id, d.at, d.account_id, d.key_id, d.policy_version, d.policy_hash, d.operation, facts_kept(d.facts), d.verdict
  from decision d
  where d.id > p_after and d.id <= v_ids[cardinality(v_ids)] and (d.verdict = 'allow'
    or exists (select from approval a where a.decision_id = d.id) or exists (select from aml_review r where r.decision_id = d.id))
  on conflict do nothing;
  return v_ids[cardinality(v_ids)];
end $$;
