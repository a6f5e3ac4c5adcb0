-- Reserves the spends of operations, in one transaction and in their order, and writes the rows of their rails: the spending core
-- knows none of them. Returns a row for each, in their order; written is the wallet of the transfer's row, true for an order's, or the
-- verdict of purchase_insert for a purchase's, if one was written.
--
-- Arguments: p_requests: objects with the members of spend_request, and at most one of
--   transfer: the row of the transfer to be sent, see transfer_insert
--   order: the row of the order to be placed, see order_insert
--   purchase: the row of the purchase to be paid, see purchase_insert, with its sealed authorization in base64 as credential
--   and, beside a transfer, in its funding: what moves its money first, see funding_begin; written is then the wallet of the burn
-- A request that cannot be read fails all of them. A process that ends now leaves rows that a job sends or gives up, as it does after
-- any other crash.
--
-- Locks: those of spend_reserve; then the intents.
create or replace function operation_reserve(p_requests jsonb)
returns table (verdict text, replayed boolean, decision_id text, violations jsonb, available_units bigint, written jsonb)
language plpgsql as $$
#variable_conflict use_column
declare
  v_outcomes spend_outcome[] := spend_reserve(array(
    select jsonb_populate_record(null::spend_request, r.value) from jsonb_array_elements(p_requests) with ordinality r order by r.ordinality));
  v_allowed jsonb[];
  v_written jsonb;
begin
  select array_agg(r.request) into v_allowed
  from rows from (jsonb_array_elements(p_requests), unnest(v_outcomes)) as r (
    request, verdict, replayed, decision_id, violations, available_units, is_new, source, held, units, screening)
  where r.is_new and r.verdict = 'allow' and r.request ?| array['transfer', 'order', 'purchase', 'funding'];

  if v_allowed is not null then
    select jsonb_object_agg(w.decision_id, w.written) into v_written
    from (
      select array_agg(a->>'account') as accounts, array_agg(a->>'decision') as decisions, array_agg(a->'transfer') as transfers
      from unnest(v_allowed) a where a ? 'transfer'
      having count(*) > 0
    ) t cross join lateral transfer_insert(t.accounts, t.decisions, t.transfers) w;
    v_written := coalesce(v_written, '{}') || coalesce((
      select jsonb_object_agg(w.decision_id, true)
      from (
        select array_agg(a->>'account') as accounts, array_agg(a->>'decision') as decisions, array_agg(a->>'key') as keys,
          array_agg(a->'order') as orders
        from unnest(v_allowed) a where a ? 'order'
        having count(*) > 0
      ) o cross join lateral order_insert(o.accounts, o.decisions, o.keys, o.orders) w), '{}');
    v_written := v_written || coalesce((
      select jsonb_object_agg(a->>'decision',
        to_jsonb(purchase_insert(a->'purchase', decode(a->'purchase'->>'credential', 'base64'))))
      from unnest(v_allowed) a where a ? 'purchase'), '{}');
    -- Its burn is sent first.
    v_written := v_written || coalesce((
      select jsonb_object_agg(a->>'decision',
        funding_begin(a->>'account', a->>'decision', a->>'key', a->'funding'))
      from unnest(v_allowed) a where a->'funding' ? 'burn'), '{}');
  end if;

  return query
  select o.verdict, o.replayed, o.decision_id, o.violations, o.available_units, case when o.is_new then v_written->o.decision_id end
  from unnest(v_outcomes) with ordinality o
  order by o.ordinality;
end $$;
