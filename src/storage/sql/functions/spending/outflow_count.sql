-- Counts a spend in its windows, and deletes the slots that have left them.
--
-- Locks: the slots' rows. The caller holds the account.
create or replace function outflow_count(p_account text, p_windows jsonb, p_at timestamptz) returns void language plpgsql volatile as $$
declare
  w record;
begin
  for w in select c.rule, c.seconds, c.usd_micros, outflow_slot_at(p_at, c.seconds) as slot from outflow_counted(p_windows) c loop
    -- An upsert would also write a lock of each row to the log.
    update outflow_slot s set usd_micros = s.usd_micros + w.usd_micros, count = s.count + 1
    where s.account_id = p_account and s.rule = w.rule and s.seconds = w.seconds and s.slot = w.slot;
    if not found then
      insert into outflow_slot (account_id, rule, seconds, slot, usd_micros, count)
      values (p_account, w.rule, w.seconds, w.slot, w.usd_micros, 1);
      -- Time has moved to a new slot: only then do old ones leave.
      delete from outflow_slot s
      where s.account_id = p_account and s.rule = w.rule and s.seconds = w.seconds
        and s.slot < outflow_slot_at(p_at - make_interval(secs => w.seconds), w.seconds);
    end if;
  end loop;
end $$;
