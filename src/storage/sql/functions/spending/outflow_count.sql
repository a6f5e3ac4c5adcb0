-- Counts a spend in its windows, and deletes the slots that have left them.
--
-- Locks: the slots' rows. The caller holds the account.
create or replace function outflow_count(p_account text, p_windows jsonb, p_at timestamptz) returns void language plpgsql volatile as $$
begin
  insert into outflow_slot as s (account_id, rule, seconds, slot, usd_micros, count)
  select p_account, w.rule, w.seconds, outflow_slot_at(p_at, w.seconds), w.usd_micros, 1 from outflow_counted(p_windows) w
  on conflict (account_id, rule, seconds, slot) do update
  set usd_micros = s.usd_micros + excluded.usd_micros, count = s.count + 1;

  delete from outflow_slot s using outflow_counted(p_windows) w
  where s.account_id = p_account and s.rule = w.rule and s.seconds = w.seconds
    and s.slot < outflow_slot_at(p_at - make_interval(secs => w.seconds), w.seconds);
end $$;
