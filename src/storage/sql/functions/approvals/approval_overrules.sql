-- Returns true if an approved approval allows its call despite these violations: it is for exactly this call of this key, and the
-- owner saw each of the rules with the limit that it has now. AML, and the pause of a key, are never overruled.
--
-- Locks: none. An approval stays approved.
create or replace function approval_overrules(p_approval text, p_account text, p_key text, p_operation text, p_fingerprint text,
  p_violations jsonb
) returns boolean language sql volatile as $$
  select exists (
    select 1 from approval a
    where a.id = p_approval and a.account_id = p_account and a.key_id = p_key and a.operation = p_operation
      and a.fingerprint = p_fingerprint and a.status = 'approved'
      and not exists (
        select 1 from jsonb_array_elements(p_violations) v
        where v->>'rule' in ('aml_screening', 'paused') or not exists (
          select 1 from jsonb_array_elements(a.violations) seen
          where seen->>'rule' = v->>'rule' and seen->>'limit' is not distinct from v->>'limit'
            and seen->>'agentId' is not distinct from v->>'agentId'))
  )
$$;
