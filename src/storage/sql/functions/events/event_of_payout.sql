-- Writes the event of a payout that the bank has sent or has paid, or whose money is back.
--
-- Locks: none.
create or replace function event_of_payout() returns trigger language plpgsql as $$
begin
  perform event_write(new.account_id, new.key_id,
    case when new.rank = 7 then 'payout.returned' when new.rank = 5 then 'payout.paid' else 'payout.sent' end, 'payout', new.id,
    jsonb_build_object('decisionId', new.decision_id, 'asset', new.asset, 'units', new.units::text, 'status', new.status,
      'recipientId', new.recipient_id, 'reason', new.reason),
    new.updated_at);
  return null;
end $$;

create or replace trigger event_of_change after update of rank on payout
  for each row when (new.rank <> old.rank and new.rank in (4, 5, 7)) execute function event_of_payout();
