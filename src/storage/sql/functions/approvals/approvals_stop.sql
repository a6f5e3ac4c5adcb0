-- Rejects the pending approvals of a key that stops being active and of the keys below it, of a card that is frozen or canceled, and of every key of an
-- account that is locked. Their approved card purchases can no longer be tried again.
--
-- Locks: the approvals' rows.
create or replace function approvals_stop() returns trigger language plpgsql as $$
declare
  v_account text := coalesce(to_jsonb(new) ->> 'account_id', new.id);
  v_key text := case tg_table_name when 'access_key' then new.id end;
  v_card text := case tg_table_name when 'card' then new.id end;
begin
  update approval set status = 'rejected', decided_at = now()
  where status = 'pending' and expires_at > now() and account_id = v_account
    and (v_key is null or v_key = any (key_path(key_id))) and (v_card is null or card_id = v_card);
  update approval set ended_at = now()
  where status = 'approved' and answer is null and problem is null and ended_at is null and account_id = v_account
    and card_id = coalesce(v_card, card_id) and (v_key is null or v_key = any (key_path(key_id)));
  return null;
end $$;

create or replace trigger approvals_stop after update of status on account
  for each row when (new.status = 'locked' and old.status <> 'locked') execute function approvals_stop();
create or replace trigger approvals_stop after update of status on access_key
  for each row when (new.status <> 'active' and old.status = 'active') execute function approvals_stop();
create or replace trigger approvals_stop after update of status on card
  for each row when (new.status <> 'active' and old.status = 'active') execute function approvals_stop();
