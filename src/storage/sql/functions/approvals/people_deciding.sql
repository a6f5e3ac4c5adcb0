-- Returns the people of an account who may decide on its approvals. Without memberships its own person is alone in it.
--
-- Locks: none.
create or replace function people_deciding(p_account text) returns table (person_id text) language sql stable as $$
  select m.person_id from membership m where m.account_id = p_account and m.role in ('owner', 'approver')
  union all
  select p_account where not exists (select from membership m where m.account_id = p_account or m.person_id = p_account)
$$;
