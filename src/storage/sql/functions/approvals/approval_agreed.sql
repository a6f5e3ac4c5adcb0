-- Returns who has agreed to an approval and counts: people of its account who may decide now, without the one who asked.
--
-- Locks: none.
create or replace function approval_agreed(p_id text) returns table (person_id text, display_name text, at timestamptz)
language sql stable as $$
  select v.person_id, p.display_name, v.at
  from approval a join approval_vote v on v.approval_id = a.id join account p on p.id = v.person_id
    left join membership m on m.person_id = v.person_id
  where a.id = p_id and v.person_id is distinct from a.asker_id and case
    when m.person_id is null then v.person_id = a.account_id
    else m.account_id = a.account_id and m.role in ('owner', 'approver') end
  order by v.at, v.person_id
$$;
