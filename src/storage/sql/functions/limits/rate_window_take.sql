-- Counts a request in a window, which opens with its first request. The count is one above the limit after the first rejection and
-- two above it after further ones, which restart the window if p_restarts. An open window that is at most half full afterwards
-- counts p_lease requests at once; taken says how many were counted.
--
-- Locks: the window's row.
create or replace function rate_window_take(p_key text, p_count int, p_seconds int, p_now timestamptz, p_restarts boolean,
  p_lease int default 1, out opened_at timestamptz, out count int, out taken int
) language plpgsql volatile as $$
#variable_conflict use_column
begin
  -- A crash may forget the requests of its last moment: windows are short, and nothing else depends on them.
  if current_setting('fsync') = 'on' then
    perform set_config('synchronous_commit', 'off', true);
  end if;
  if p_lease > 1 then
    update rate_window w set count = w.count + p_lease
    where w.key = p_key and p_now < w.opened_at + make_interval(secs => p_seconds) and w.count + p_lease <= p_count / 2
    returning w.opened_at, w.count into opened_at, count;
    if found then
      taken := p_lease;
      return;
    end if;
  end if;
  insert into rate_window as w (key, opened_at, count) values (p_key, p_now, 1)
  on conflict (key) do update set
    opened_at = case
      when p_now < w.opened_at + make_interval(secs => p_seconds) and not (p_restarts and w.count > p_count) then w.opened_at
      else p_now end,
    count = case
      when p_now >= w.opened_at + make_interval(secs => p_seconds) then 1
      else least(w.count, p_count + 1) + 1 end
  returning w.opened_at, w.count into opened_at, count;
  taken := 1;
end $$;
