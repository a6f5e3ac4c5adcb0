-- The ancestors of a key, root first, with what a spend below them is judged by; null for a root.
--
-- Locks: none.
create or replace function key_ancestors(p_path text[]) returns jsonb language plpgsql stable as $$
begin
  if p_path = '{}' then
    return null;
  end if;
  return (
    select jsonb_agg(jsonb_build_object('id', k.id, 'name', k.name, 'status', k.status, 'scopes', k.scopes,
      'policy', k.policy, 'policyVersion', k.policy_version) order by array_position(p_path, k.id))
    from access_key k where k.id = any (p_path));
end $$;
