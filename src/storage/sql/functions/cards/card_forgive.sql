-- Cancels what of a purchase is not paid, up to the cents that the merchant gave back: the account's debts for it, then settlements
-- that the chain has refused. What those held is free. The caller posts the result.
--
-- Returns the cents that are left for the account, and the postings.
-- Locks: none. The caller holds the account.
create or replace function card_forgive(
  p_authorization text, p_units bigint, p_at timestamptz,
  out left_units bigint, out sources text[], out destinations text[], out assets text[], out units bigint[]
) language plpgsql as $$
#variable_conflict use_column
declare
  d record;
  v_part bigint;
  v_free bigint;
begin
  left_units := p_units;
  sources := '{}';
  destinations := '{}';
  assets := '{}';
  units := '{}';
  for d in
    select o.id as debt, o.owed, o.paid_to, s.id as settlement, s.account_id, s.place, s.asset, s.units
    from debt o left join card_settlement s on o.kind = 'settlement' and s.id = o.reference
    where o.owed > 0 and o.asset = 'USD' and (o.kind = 'card' and o.reference = p_authorization or s.authorization_id = p_authorization)
      and o.account_id = (select a.account_id from card_authorization a where a.id = p_authorization)
    union all
    select null, s.owed_units, null, s.id, s.account_id, s.place, s.asset, s.units
    from card_settlement s
    where s.authorization_id = p_authorization and s.status = 'refused' and s.owed_asset = 'USD' and s.owed_units > 0
      and not exists (select from debt o where o.kind = 'settlement' and o.reference = s.id and o.owed > 0)
    order by 1, 4
  loop
    exit when left_units = 0;
    v_part := least(left_units, d.owed);
    left_units := left_units - v_part;
    if d.debt is not null then
      sources := sources || d.paid_to;
      destinations := destinations || 'receivable:debts'::text;
      assets := assets || 'USD'::text;
      units := units || v_part;
      update debt set owed = d.owed - v_part, paid_at = case v_part when d.owed then p_at end where id = d.debt;
    end if;
    if d.settlement is not null then
      v_free := case v_part when d.owed then d.units else div(d.units::numeric * v_part, d.owed::numeric) end;
      update card_settlement set units = d.units - v_free, owed_units = d.owed - v_part,
        status = case v_part when d.owed then 'freed' else status end,
        next_try_at = case v_part when d.owed then null else next_try_at end,
        ended_at = case v_part when d.owed then p_at else ended_at end
      where id = d.settlement;
      if v_free > 0 then
        sources := sources || (d.account_id || ':' || d.place || ':held');
        destinations := destinations || (d.account_id || ':' || d.place || ':available');
        assets := assets || d.asset;
        units := units || v_free;
      end if;
    end if;
  end loop;
end $$;
