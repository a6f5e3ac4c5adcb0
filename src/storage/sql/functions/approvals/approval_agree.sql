-- Records that a person agrees to a pending approval, once, and tells whether that is enough: so many different people who may decide now,
-- and not the one who asked. What somebody said who was removed since, or may only read, does not count.
--
-- Locks: the approval's row, so that two who agree at once count each other. The caller has locked the account's people.
create or replace function approval_agree(p_id text, p_account text, p_person text, p_at timestamptz)
returns table (verdict text, agreed int) language plpgsql as $$
#variable_conflict use_column
declare
  v approval;
begin
  select * into v from approval a where a.id = p_id and a.account_id = p_account for no key update;
  if not found or v.status <> 'pending' or v.expires_at <= p_at then
    return query select 'ended', 0;
    return;
  end if;
  if v.asker_id = p_person then
    return query select 'own', 0;
    return;
  end if;
  insert into approval_vote (approval_id, person_id, at) values (p_id, p_person, p_at) on conflict do nothing;
  agreed := (select count(*) from approval_agreed(p_id));
  verdict := case when agreed >= v.needed then 'enough' else 'waits' end;
  return next;
end $$;
