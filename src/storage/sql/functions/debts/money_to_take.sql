-- Splits p_micros millionths of a currency over an owner's sources: each as far as it goes, in order. Changes nothing.
--
-- Arguments: a rate is the worth of a smallest unit in ten-billionths of a millionth.
-- Locks: none. The caller holds the balances.
create or replace function money_to_take(p_account text, p_places text[], p_assets text[], p_rates bigint[], p_micros numeric)
returns table (place text, asset text, units bigint, micros bigint) language plpgsql as $$
#variable_conflict use_column
declare
  h record;
  v_left numeric := p_micros;
  v_units bigint;
begin
  for h in select * from unnest(p_places, p_assets, p_rates) with ordinality as p (place, asset, rate, ordinal)
    order by p.ordinal
  loop
    exit when v_left <= 0;
    select b.units into v_units from balance b where b.account = p_account || ':' || h.place || ':available' and b.asset = h.asset;
    place := h.place;
    asset := h.asset;
    units := least(coalesce(v_units, 0), div(v_left * 10000000000 + h.rate - 1, h.rate::numeric));
    micros := least(v_left, div(units::numeric * h.rate, 10000000000));
    continue when micros = 0;
    v_left := v_left - micros;
    return next;
  end loop;
end $$;
