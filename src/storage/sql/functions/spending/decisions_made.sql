-- The contents of decisions that have no authentication code yet, for the process that has just made them. A volatile function, so
-- that its snapshot includes what the rest of its statement wrote.
--
-- Locks: none.
create or replace function decisions_made(p_ids text[]) returns jsonb language sql volatile as $$
  select coalesce(jsonb_agg(jsonb_build_object('id', d.id, 'at', to_char(d.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'account_id', d.account_id, 'key_id', d.key_id, 'operation', d.operation, 'verdict', d.verdict,
    'policy_version', d.policy_version, 'policy_hash', d.policy_hash, 'facts', d.facts, 'violations', d.violations,
    'available_units', d.available_units::text)), '[]')
  from decision d where d.id = any (p_ids) and d.mac is null
$$;
