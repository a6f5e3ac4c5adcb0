-- Those facts of a decision that histories show, and that are kept of it once it is archived.
--
-- Locks: none.
create or replace function facts_kept(p_facts jsonb) returns jsonb language plpgsql immutable as $$
begin
  return (select coalesce(jsonb_object_agg(f.key, f.value), '{}') from jsonb_each(p_facts) f
    where f.value <> 'null' and f.key in ('category', 'amount', 'asset', 'usdMicros', 'usdRate', 'task', 'chain', 'counterparty', 'symbol', 'approvalId'));
end $$;
