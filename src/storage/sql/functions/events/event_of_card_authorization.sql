-- Writes the event of a card purchase that was asked for. card_authorize writes those of its increments, card_apply those of what
-- follows. The reserve of a card is no purchase.
--
-- Locks: none.
create or replace function event_of_card_authorization() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, new.key_id, case new.status when 'declined' then 'card.declined' else 'card.authorized' end,
    'card_transaction', new.id,
    jsonb_build_object('cardId', new.card_id, 'decisionId', new.decision_id, 'asset', 'USD',
      'units', (case new.status when 'declined' then new.units else new.approved end)::text, 'reason', new.reason),
    new.created_at);
  return null;
end $$;

create or replace trigger event_of_insert after insert on card_authorization
  for each row when (not new.is_reserve and (new.status = 'declined' or new.approved > 0)) execute function event_of_card_authorization();
