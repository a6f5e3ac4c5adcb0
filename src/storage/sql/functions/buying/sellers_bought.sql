-- Resources that an account has paid for, or one of its keys, with what the latest purchase of each was, newest first.
create or replace function sellers_bought(p_account text, p_key text, p_limit int)
returns table (resource text, origin text, seller text, protocol text, asset text, units bigint, at timestamptz)
language sql stable as $$
  select b.resource, b.origin, b.seller, b.protocol, b.asset, b.units, b.created_at
  from (
    select distinct on (p.resource) p.* from purchase p
    where p.account_id = p_account and p.state = 'settled' and (p_key is null or p.key_id = p_key)
    order by p.resource, p.id desc
  ) b
  order by b.id desc limit p_limit
$$;
