-- What the card programme has promised and the account's owner can still take away, in millionths of a USD: holds of purchases on
-- the wallet, also while they are being pulled to the escrow, and settlements from it that are not paid, on every chain: those of
-- debts too, because the debt is open again if the chain refuses them.
--
-- Locks: none. The caller holds the account.
create or replace function card_float_micros(p_account text) returns bigint language plpgsql stable as $$
begin
  return (select coalesce(sum(o.micros), 0)::bigint from (
    select h.micros from card_authorization a join card_hold h on h.authorization_id = a.id
    where a.account_id = p_account and a.status = 'pending' and h.place <> 'bank' and left(h.place, 7) <> 'escrow.'
    union all
    select s.owed_units * 10000 from card_settlement s
    where s.account_id = p_account and left(s.place, 7) <> 'escrow.' and s.ended_at is null
  ) o);
end $$;
