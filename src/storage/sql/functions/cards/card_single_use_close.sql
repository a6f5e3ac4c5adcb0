-- Writes that a card for one purchase has ended, and cancels it.
--
-- Locks: the card's rows. The caller holds the account.
create or replace function card_single_use_close(p_card text, p_status text, p_at timestamptz) returns void language plpgsql as $$
begin
  update card_single_use set status = p_status, ended_at = p_at where card_id = p_card;
  update card set status = 'canceled', version = version + 1 where id = p_card and status <> 'canceled';
end $$;
