-- Moves what is held from one authorization to another, up to a worth in millionths of a USD. The balances stay as they are.
--
-- Locks: none. The caller holds the account.
create or replace function card_hold_move(p_from text, p_to text, p_micros numeric) returns void language plpgsql as $$
declare
  h record;
  v_left numeric := p_micros;
  v_worth numeric;
  v_take bigint;
begin
  for h in select * from card_hold where authorization_id = p_from and micros > 0 order by ordinal loop
    exit when v_left <= 0;
    v_worth := least(v_left, h.micros);
    v_take := div(h.units * v_worth + h.micros - 1, h.micros::numeric);
    update card_hold set units = units - v_take, micros = micros - v_worth where authorization_id = p_from and ordinal = h.ordinal;
    perform card_hold_add(p_to, h.place, h.asset, v_take, v_worth::bigint);
    v_left := v_left - v_worth;
  end loop;
end $$;
