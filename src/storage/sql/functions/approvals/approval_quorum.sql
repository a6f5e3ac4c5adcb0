-- Sets the number of people that a new approval needs, whoever asks for it: by the amount of its decision. A change spends nothing, and
-- is made by one owner.
--
-- Locks: none.
create or replace function approval_quorum() returns trigger language plpgsql as $$
begin
  if new.decision_id is not null then
    new.needed := quorum_needed(new.account_id,
      ((decision_read(new.decision_id)).facts ->> 'usdMicros')::bigint);
  end if;
  return new;
end $$;

create or replace trigger approval_quorum before insert on approval
  for each row execute function approval_quorum();
