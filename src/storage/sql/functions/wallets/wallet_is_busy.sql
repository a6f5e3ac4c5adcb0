-- Whether the gateway has promised money of an account's wallet that has not left it, or paid for the account what it owes.
--
-- Locks: none. The caller holds the account.
create or replace function wallet_is_busy(p_account text) returns boolean language plpgsql stable as $$
begin
  return exists (select from debt d where d.account_id = p_account and d.owed > 0)
    or exists (
      select from card_authorization a join card_hold h on h.authorization_id = a.id and h.units > 0
      where a.account_id = p_account and a.status = 'pending' and h.place <> 'bank' and left(h.place, 7) <> 'escrow.'
    )
    or exists (
      select from card_settlement s
      where s.account_id = p_account and s.ended_at is null and left(s.place, 7) <> 'escrow.'
    )
    or exists (select from card_pull l where l.account_id = p_account and l.ended_at is null);
end $$;
