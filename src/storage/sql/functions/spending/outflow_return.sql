-- Takes a released spend out of the slots of its windows.
--
-- Locks: the slots' rows. The caller holds the account.
create or replace function outflow_return(p_account text, p_windows jsonb, p_reserved_at timestamptz)
returns void language plpgsql volatile as $$
begin
  update outflow_slot s set usd_micros = s.usd_micros - w.usd_micros, count = s.count - 1
  from outflow_counted(p_windows) w
  where s.account_id = p_account and s.rule = w.rule and s.seconds = w.seconds
    and s.slot = outflow_slot_at(p_reserved_at, w.seconds);
end $$;
