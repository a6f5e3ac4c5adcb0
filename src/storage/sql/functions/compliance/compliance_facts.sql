-- The compliance facts of a transfer.
--
-- Returns
--   travel_rule_id: unused data recorded for exactly this transfer. A notified institution has ten seconds to decline it; after
--     that, silence does not block the transfer.
--   unanswered: state of the newest such data that names an institution
--   is_declined: a decline blocks the address until an institution accepts, regardless of new data, another amount or erasure. The
--     latest answer counts; of two simultaneous answers, the decline.
--   listed_id: data that names a listed party blocks its address, even after new data or erasure, until a manual decision clears
--     it. Such data is never sent to an institution.
-- Locks: none.
create or replace function compliance_facts(
  p_account text, p_destination text, p_token text, p_units bigint, p_chain text, p_at timestamptz,
  out country text, out is_blocked boolean, out travel_rule_id text, out unanswered text, out is_declined boolean, out listed_id text
) language plpgsql stable as $$
#variable_conflict use_column
begin
  select a.country, exists (select from blocked_address b where b.account_id = a.id and b.address = p_destination)
  into country, is_blocked from account a where a.id = p_account;
  is_declined := false;
  -- Most destinations have no data at all.
  if not exists (select from travel_rule t where t.account_id = p_account and t.destination = p_destination) then
    return;
  end if;
  select t.id into travel_rule_id from travel_rule t
  where t.account_id = p_account and t.destination = p_destination and t.token = p_token and t.units = p_units and t.chain = p_chain
    and t.sealed is not null and travel_rule_is_unused(t.decision_id) and t.status <> 'declined'
    and (t.vasp_name is null or t.status = 'accepted' or t.created_at <= p_at - interval '10 seconds')
  order by t.id limit 1;
  select t.status into unanswered from travel_rule t
  where t.account_id = p_account and t.destination = p_destination and t.token = p_token and t.units = p_units and t.chain = p_chain
    and t.sealed is not null and travel_rule_is_unused(t.decision_id) and t.vasp_name is not null
  order by t.id desc limit 1;
  is_declined := coalesce((select t.status = 'declined' from travel_rule t
    where t.account_id = p_account and t.destination = p_destination and t.vasp_name is not null
      and t.status in ('accepted', 'declined')
    order by t.tried_at desc, t.status desc limit 1), false);
  select t.id into listed_id from travel_rule t
  where t.account_id = p_account and t.destination = p_destination and t.vasp_name is null and t.status = 'declined'
    and not exists (select from travel_rule_decision d where d.travel_rule_id = t.id and d.verdict = 'approve')
  order by t.id limit 1;
end $$;
