-- The screening that a decision records, as policies/aml/screening.ts writes it.
create or replace function aml_violation(p_lists text) returns jsonb language sql immutable as $$
  select jsonb_build_object('rule', 'aml_screening', 'limit', p_lists, 'used', null, 'requested', 'review',
    'remaining', null, 'resetsAt', null)
$$;
