-- Reserves a purchase's money from its first source, under its decision.
--
-- Arguments: p_spend as in card_authorize; its mac is stored where the facts are those that the caller expected.
-- Verdicts and locks: those of spend_reserve.
create or replace function card_reserve(
  p_spend jsonb, p_facts jsonb, p_place text, p_asset text, p_units bigint, p_usd_micros bigint, p_approval text,
  out o spend_outcome
) language plpgsql as $$
declare
  q spend_request := jsonb_populate_record(null::spend_request, p_spend);
  v_outcomes spend_outcome[];
begin
  if p_facts <> q.facts then
    q.mac := null;
  end if;
  q.facts := p_facts;
  q.asset := p_asset;
  q.units := p_units;
  q.usd_micros := p_usd_micros;
  q.needs_approval := q.needs_approval and p_approval is null;
  q.is_approved := false;
  q.approval := p_approval;
  q.source := q.account || ':' || p_place || ':available';
  q.held := q.account || ':' || p_place || ':held';
  v_outcomes := spend_reserve(array[q]);
  o := v_outcomes[1];
end $$;
