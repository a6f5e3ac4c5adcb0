-- A purchase that the chain brought back after all, and that the wallet paid alone, had a second posting and no first one. Since 0159 the
-- first is the transaction's row, so that histories and exports had lost these.
alter table posting disable trigger user;
update posting p
set ordinal = 1, kind = 'purchase_restored', reference = split_part(p.transaction_id, ':', 2),
  at = coalesce((select u.updated_at from purchase u where u.id = split_part(p.transaction_id, ':', 2)), now())
where p.ordinal = 2 and p.transaction_id >= 'restored:' and p.transaction_id < 'restored;'
  and not exists (select from posting f where f.transaction_id = p.transaction_id and f.ordinal = 1);
alter table posting enable trigger user;
