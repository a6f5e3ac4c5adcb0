-- Gives a wallet that the gateway owns to another owner, and notes what its cards hold of it. Cards and their clearings wait.
--
-- Arguments: p_tokens and p_prices as in card_open_micros.
-- Locks: the account, then the wallet's row.
create or replace function wallet_give(p_account text, p_owner jsonb, p_tokens text[], p_prices bigint[]) returns void language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended(p_account, 0));
  update wallet set owner = p_owner, card_cover = card_open_micros(p_account, chain, p_tokens, p_prices, null)
  where account_id = p_account and owner->>'kind' = 'gateway' and p_owner->>'kind' <> 'gateway';
end $$;
