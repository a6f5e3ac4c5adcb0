-- The windows of a spend, one for each counter. p_windows may name a counter several times, once for each limit.
create or replace function outflow_counted(p_windows jsonb)
returns table (rule text, seconds int, usd_micros bigint) language sql immutable as $$
  select distinct w.rule, w.seconds, w.usd_micros
  from jsonb_to_recordset(p_windows) as w (rule text, seconds int, usd_micros bigint)
$$;
