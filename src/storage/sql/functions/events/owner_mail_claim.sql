-- Claims mails to owners that are due, for one gateway until p_until. All unsent events of one type and address are claimed
-- together, because one mail tells of them. An address gets mails of one type half a minute apart, and six an hour at most: an
-- agent that keeps asking does not flood its owner. What comes in between waits for the next mail.
--
-- Arguments: p_limit is the number of addresses.
-- Locks: the rows of addresses that are free, so that one gateway at a time claims for an address; then the rows of their mails.
create or replace function owner_mail_claim(p_limit int, p_at timestamptz, p_until timestamptz)
returns table (
  destination_hash text, sealed_address bytea, sequence bigint, account_id text, type text, object_id text, data jsonb, at timestamptz,
  tries int, expires_at timestamptz
) language plpgsql as $$
#variable_conflict use_column
declare
  v_address login_destination;
  v_type record;
begin
  for v_address in
    select d.* from login_destination d
    where d.destination_hash in (
      select m.destination_hash from owner_mail m where m.sent_at is null and m.due_at <= p_at and m.held_until <= p_at)
    limit p_limit for no key update skip locked
  loop
    -- Read after the lock: another gateway may have claimed them until now.
    for v_type in
      select m.type,
        count(distinct m.sent_at) < 6 and coalesce(max(m.sent_at) <= p_at - interval '30 seconds', true) as is_free
      from owner_mail m
      where m.destination_hash = v_address.destination_hash and (m.sent_at is null or m.sent_at > p_at - interval '1 hour')
      group by m.type
      having bool_or(m.sent_at is null and m.due_at <= p_at) and not bool_or(m.sent_at is null and m.held_until > p_at)
    loop
      update owner_mail m set held_until = case when v_type.is_free then p_until else p_at + interval '10 seconds' end
      where m.destination_hash = v_address.destination_hash and m.type = v_type.type and m.sent_at is null;
      if v_type.is_free then
        return query
        select m.destination_hash, v_address.sealed_address, m.sequence, m.account_id, m.type, m.object_id, m.data, m.at, m.tries,
          m.expires_at
        from owner_mail m
        where m.destination_hash = v_address.destination_hash and m.type = v_type.type and m.sent_at is null and m.held_until = p_until
        order by m.sequence;
      end if;
    end loop;
  end loop;
end $$;
