-- The objection of AML at the moment of the reservation, as a violation; null: none.
--
-- Locks: none. The caller holds the account.
create or replace function aml_objection(p_account text, p_windows jsonb, p_released text, p_at timestamptz)
returns jsonb language plpgsql volatile as $$
declare
  v_exceeded jsonb;
  v_lists text;
begin
  if p_windows is not null then
    v_exceeded := outflow_exceeded(p_account, p_windows, p_at);
    if v_exceeded <> '[]' then
      select string_agg(e->>'rule', ',' order by e->>'rule') into v_lists from jsonb_array_elements(v_exceeded) e;
    end if;
  end if;
  if v_lists is null and p_released is not null and not aml_released(p_account, p_released, p_at) then
    v_lists := coalesce((select array_to_string(r.lists, ',') from aml_review r where r.id = p_released), 'review');
  end if;
  return case when v_lists is not null then aml_violation(v_lists) end;
end $$;
