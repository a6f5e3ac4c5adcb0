-- The number of the slot that a moment lies in, for a window of p_seconds. A slot is a 24th of its window: 25 rows answer for any
-- history, and a spend leaves its window at most one slot late, never early.
create or replace function outflow_slot_at(p_at timestamptz, p_seconds int) returns bigint language sql stable as $$
  select floor(extract(epoch from p_at) / greatest(ceil(p_seconds / 24.0), 1))::bigint
$$;
