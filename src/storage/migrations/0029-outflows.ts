/**
 * Outflows: how much left an account within the AML windows, counted where the money is reserved. A window is kept as slots of
 * a 24th of its length, so 25 rows answer for any history, and a spend leaves its window at most one slot late, never early.
 *
 * Locks: whoever reads or writes the slots of an account here holds the account's advisory lock (level 3 in 0005-budgets).
 */
export const outflows = `
create table outflow_slot (
  account_id text collate "C" not null,
  rule text collate "C" not null check (rule in ('velocity', 'structuring')),
  -- The length of the window.
  seconds int not null check (seconds > 0),
  slot bigint not null,
  usd_micros bigint not null check (usd_micros >= 0),
  count int not null check (count >= 0),
  primary key (account_id, rule, seconds, slot)
) with (fillfactor = 50);

-- The windows that a spend was counted in, to be given back on its release.
alter table reservation add column windows jsonb;

-- The number of the slot that a moment lies in, for a window of so many seconds.
create function outflow_slot_at(p_at timestamptz, p_seconds int) returns bigint language sql stable as $$
  select floor(extract(epoch from p_at) / greatest(ceil(p_seconds / 24.0), 1))::bigint
$$;

-- The windows of a spend, one for each counter.
create function outflow_counted(p_windows jsonb)
returns table (rule text, seconds int, usd_micros bigint) language sql immutable as $$
  select distinct w.rule, w.seconds, w.usd_micros
  from jsonb_to_recordset(p_windows) as w (rule text, seconds int, usd_micros bigint)
$$;

-- The rules that one more spend would break, as violations. A window without a maximum counts spends alone.
create function outflow_exceeded(p_account text, p_windows jsonb, p_at timestamptz) returns jsonb language sql volatile as $$
  select coalesce(jsonb_agg(distinct jsonb_build_object('rule', w.rule, 'limit', null, 'used', null, 'requested', null,
    'remaining', null, 'resetsAt', null)), '[]')
  from jsonb_to_recordset(p_windows) as w
    (rule text, seconds int, usd_micros bigint, max_micros bigint, min_count int, is_judged boolean)
  cross join lateral (
    select coalesce(sum(s.usd_micros), 0) as used, coalesce(sum(s.count), 0) as count
    from outflow_slot s
    where s.account_id = p_account and s.rule = w.rule and s.seconds = w.seconds
      and s.slot >= outflow_slot_at(p_at - make_interval(secs => w.seconds), w.seconds)
  ) past
  where w.is_judged and past.count + 1 >= w.min_count
    and (w.max_micros is null or past.used + w.usd_micros > w.max_micros)
$$;

create function outflow_count(p_account text, p_windows jsonb, p_at timestamptz) returns void language sql volatile as $$
  insert into outflow_slot as s (account_id, rule, seconds, slot, usd_micros, count)
  select p_account, w.rule, w.seconds, outflow_slot_at(p_at, w.seconds), w.usd_micros, 1 from outflow_counted(p_windows) w
  on conflict (account_id, rule, seconds, slot) do update
  set usd_micros = s.usd_micros + excluded.usd_micros, count = s.count + 1;

  delete from outflow_slot s using outflow_counted(p_windows) w
  where s.account_id = p_account and s.rule = w.rule and s.seconds = w.seconds
    and s.slot < outflow_slot_at(p_at - make_interval(secs => w.seconds), w.seconds);
$$;

-- Gives back what a released spend was counted for.
create function outflow_return(p_account text, p_windows jsonb, p_reserved_at timestamptz)
returns void language sql volatile as $$
  update outflow_slot s set usd_micros = s.usd_micros - w.usd_micros, count = s.count - 1
  from outflow_counted(p_windows) w
  where s.account_id = p_account and s.rule = w.rule and s.seconds = w.seconds
    and s.slot = outflow_slot_at(p_reserved_at, w.seconds);
$$;
`
