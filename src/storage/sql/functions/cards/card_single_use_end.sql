-- Ends a card for one purchase, once: it is canceled, and what no purchase has taken of its reserve is free. A purchase that is open
-- keeps what it has taken.
--
-- Arguments: p_status is expired or canceled.
-- Returns whether this call has ended it.
-- Locks: the account; then those of card_apply, and the card's rows.
create or replace function card_single_use_end(p_card text, p_status text, p_at timestamptz) returns boolean language plpgsql as $$
declare
  u card_single_use;
begin
  perform pg_advisory_xact_lock(hashtextextended(s.account_id, 0)) from card_single_use s where s.card_id = p_card;
  select * into u from card_single_use s where s.card_id = p_card and s.ended_at is null;
  if not found then
    return false;
  end if;
  perform card_apply(p_status, r.processor_token, 'close', 0, case p_status when 'expired' then 'expired' else 'voided' end, p_at,
    '{}', '{}', '{}', '{}')
  from card_authorization r where r.id = u.reserve_id;
  perform card_single_use_close(u.card_id, p_status, p_at);
  return true;
end $$;
