-- Moves a part of a spend's hold to its destination, once for each p_id. The last part settles the spend.
--
-- Verdicts: taken; not_reserved; already_taken; already_settled; already_released; too_much (more than is left).
-- Locks: the reservation; then the balances of the hold and the destination, by account.
create or replace function spend_take(
  p_decision text, p_id text, p_units bigint, p_destination text, p_at timestamptz, out verdict text
) language plpgsql as $$
#variable_conflict use_column
declare
  r reservation;
begin
  select * into r from reservation where decision_id = p_decision for update;
  if not found then
    verdict := 'not_reserved';
    return;
  elsif exists (select 1 from ledger_transaction where id = p_id) then
    verdict := 'already_taken';
    return;
  elsif r.status <> 'reserved' then
    verdict := 'already_' || r.status;
    return;
  elsif r.taken + p_units > r.units then
    verdict := 'too_much';
    return;
  end if;
  verdict := 'taken';
  update reservation set taken = r.taken + p_units,
    status = case when r.taken + p_units = r.units then 'settled' else status end,
    resolved_at = case when r.taken + p_units = r.units then p_at end
  where decision_id = p_decision;
  perform ledger_book(array[p_id], array[1], array['take'], array[p_decision], array[p_at], array[r.held], array[p_destination], array[r.asset], array[p_units]);
end $$;
