-- The answer to a call whose idempotency key is taken. A statement of its own, so that its snapshot includes the winner of a race
-- that the caller waited for.
--
-- Verdicts: repeated (the first call was allowed); the first call's verdict otherwise; fingerprint_mismatch (another request,
--   or a write that spends nothing).
-- Locks: none. The caller holds the idempotency pair.
create or replace function spend_replay(p_principal text, p_key text, p_fingerprint text,
  out verdict text, out decision_id text, out violations jsonb, out available_units bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  v_fingerprint text;
begin
  select i.fingerprint, i.decision_id, d.verdict, d.violations, d.available_units
  into v_fingerprint, decision_id, verdict, violations, available_units
  from idempotency i cross join lateral decision_read(i.decision_id) d
  where i.principal = p_principal and i.key = p_key;
  -- A key without a decision belongs to a write that spends nothing.
  if v_fingerprint is distinct from p_fingerprint or decision_id is null then
    verdict := 'fingerprint_mismatch';
  elsif verdict = 'allow' then
    verdict := 'repeated';
  end if;
end $$;
