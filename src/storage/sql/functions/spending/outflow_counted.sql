-- The windows of a spend, one for each counter. p_windows may name a counter several times, once for each limit. A reservation keeps
-- them without their limits, as arrays.
create or replace function outflow_counted(p_windows jsonb)
returns table (rule text, seconds int, usd_micros bigint) language sql immutable as $$
  select distinct coalesce(w->>'rule', w->>0), coalesce(w->>'seconds', w->>1)::int, coalesce(w->>'usd_micros', w->>2)::bigint
  from jsonb_array_elements(p_windows) w
$$;
