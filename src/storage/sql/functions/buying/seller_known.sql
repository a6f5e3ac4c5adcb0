-- What an account remembers of a seller: the payees that it paid, the number of its purchases, the latest of them as a document,
-- and the price of the latest purchase of a resource in an asset.
create or replace function seller_known(
  p_account text, p_seller text, p_resource text, p_asset text, out payees text[], out purchases bigint, out last jsonb, out price bigint
) language plpgsql stable as $$
#variable_conflict use_column
begin
  select coalesce(array_agg(s.pay_to order by s.pay_to), '{}'), coalesce(sum(s.count), 0)::bigint into payees, purchases
  from (select p.pay_to, count(*) as count from purchase p
    where p.account_id = p_account and p.seller = p_seller and p.state = 'settled' group by p.pay_to limit 100) s;
  if purchases = 0 then
    return;
  end if;
  select jsonb_build_object('payTo', p.pay_to, 'price', p.units::text, 'asset', p.asset) into last
  from purchase p where p.account_id = p_account and p.seller = p_seller and p.state = 'settled' order by p.id desc limit 1;
  select p.units into price from purchase p
  where p.account_id = p_account and p.seller = p_seller and p.state = 'settled' and p.resource = p_resource and p.asset = p_asset
  order by p.id desc limit 1;
end $$;
