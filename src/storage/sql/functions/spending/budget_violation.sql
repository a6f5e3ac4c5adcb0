-- One violation of a budget, as an array, in the shape that policies/ uses. It resets at the end of p_day, UTC; never, if that is
-- infinity.
create or replace function budget_violation(p_rule text, p_limit text, p_used text, p_requested text, p_remaining text, p_day date)
returns jsonb language sql immutable as $$
  select jsonb_build_array(jsonb_build_object(
    'rule', p_rule, 'limit', p_limit, 'used', p_used, 'requested', p_requested, 'remaining', p_remaining,
    'resetsAt', case when isfinite(p_day) then to_char(p_day + 1, 'YYYY-MM-DD"T00:00:00.000Z"') end))
$$;
