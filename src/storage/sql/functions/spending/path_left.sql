-- What the budgets of a key's ancestors leave, in millionths of a US dollar; null: no budget has a maximum.
--
-- Arguments: as those of path_exceeded.
-- Locks: none. The caller holds the account.
create or replace function path_left(q spend_request, p_keys text[], p_day date) returns bigint language plpgsql volatile as $$
begin
  return (
    select min(budget_left(array[p.key], p.budgets, p_day) - earmarks_open(p.key, p_keys, q.at))
    from jsonb_to_recordset(q.path) as p (key text, budgets jsonb));
end $$;
