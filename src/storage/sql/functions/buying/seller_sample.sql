-- The paid purchases that a seller's shared record is made of: the latest ten of each account, of the five hundred oldest accounts. What
-- one account buys, however much, pushes no other's purchases out, and new accounts push no old ones out.
create or replace function seller_sample(p_seller text) returns setof purchase language sql stable as $$
  with recursive accounts as (
    (select p.account_id, 1 as n from purchase p where p.seller = p_seller and p.state = 'settled' order by p.account_id limit 1)
    union all
    select (select p.account_id from purchase p where p.seller = p_seller and p.state = 'settled' and p.account_id > a.account_id
      order by p.account_id limit 1), a.n + 1
    from accounts a where a.account_id is not null and a.n < 500
  )
  select l.* from accounts a cross join lateral (
    select p.* from purchase p
    where p.seller = p_seller and p.account_id = a.account_id and p.state = 'settled' order by p.id desc limit 10
  ) l
$$;
