/** Spending: what the functions that reserve and resolve share. They are in 0005-budgets and 0012-investing, with their locks. */
export const spending = `
-- Millionths as a decimal without needless zeros. The product is exact; a quotient would be rounded.
create function decimal_of_micros(p_micros bigint) returns text language sql immutable as $$
  select trim_scale(p_micros * 0.000001)::text
$$;

create function budget_violation(p_rule text, p_limit text, p_used text, p_requested text, p_remaining text, p_day date)
returns jsonb language sql immutable as $$
  select jsonb_build_array(jsonb_build_object(
    'rule', p_rule, 'limit', p_limit, 'used', p_used, 'requested', p_requested, 'remaining', p_remaining,
    'resetsAt', to_char(p_day + 1, 'YYYY-MM-DD"T00:00:00.000Z"')))
$$;

-- What a call with a known idempotency key is answered. A statement of its own, so that its snapshot sees the winner of a
-- race that the caller waited for.
create function spend_replay(p_principal text, p_key text, p_fingerprint text,
  out verdict text, out decision_id text, out violations jsonb, out available_units bigint
) language plpgsql as $$
#variable_conflict use_column
declare
  v_fingerprint text;
begin
  select i.fingerprint, i.decision_id, d.verdict, d.violations, d.available_units
  into v_fingerprint, decision_id, verdict, violations, available_units
  from idempotency i left join decision d on d.id = i.decision_id
  where i.principal = p_principal and i.key = p_key;
  -- A key without a decision belongs to a write that spends nothing.
  if v_fingerprint is distinct from p_fingerprint or decision_id is null then
    verdict := 'fingerprint_mismatch';
  elsif verdict = 'allow' then
    verdict := 'repeated';
  end if;
end $$;
`
