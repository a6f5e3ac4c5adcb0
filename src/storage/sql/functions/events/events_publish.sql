-- Publishes events of committed transactions: numbers them by account, in the order in which they were written, and takes them out of the
-- outbox. What an account's readers have seen stays the beginning of what they will see. Returns the accounts with new events, and how
-- many events there were.
--
-- An event of a spend has the task of its decision; one of a key, that of the key.
--
-- Every active endpoint of the account that asks for the type gets a delivery. A ping is for its own endpoint. Every e-mail address of
-- the account gets a mail of what its owner should know: at 8 o'clock UTC for approvals of those who want them daily. Every browser
-- that was subscribed in the last 30 days, by a session that nobody has ended, gets a push message of the same, at once; so does every
-- channel. Those two are also told of requests for money that are paid. An address with a channel of its own gets requests for approval by that, and the rest by mails.
--
-- Arguments: p_limit is the number of events that are published at most; p_at is the time of their publication and deliveries.
-- Locks: the publishers' own, before the read, so that the read includes what the last publisher left; then the rows of endpoints
--   with new deliveries.
create or replace function events_publish(p_limit int, p_at timestamptz)
returns table (account_id text, last_sequence bigint, moved bigint) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
#variable_conflict use_column
declare
  v_ids text[];
begin
  perform pg_advisory_xact_lock(hashtext('bursar events'), 0);
  with taken as (
    delete from event_outbox o
    where o.ctid = any (array(select p.ctid from event_outbox p order by p.position limit p_limit))
    returning o.position, o.event_id
  )
  select array_agg(t.event_id order by t.position) into v_ids from taken t;
  if v_ids is null then
    return;
  end if;
  return query
  with written as materialized (
    select n.place, e.*,
      case e.object_kind when 'key' then (select k.task from access_key k where k.id = e.object_id)
        else (decision_known(case e.object_kind when 'decision' then e.object_id
          when 'transfer' then (select t.decision_id from transfer t where t.id = e.object_id)
          else e.data->>'decisionId' end)).facts->>'task' end as task
    from unnest(v_ids) with ordinality as n (event_id, place) join event e on e.id = n.event_id
  ), head as (
    insert into event_head as h (account_id, last_sequence)
    select w.account_id, count(*) from written w group by w.account_id
    on conflict (account_id) do update set last_sequence = h.last_sequence + excluded.last_sequence
    returning h.account_id, h.last_sequence
  ), published as materialized (
    select w.*, h.last_sequence + 1 - row_number() over (partition by w.account_id order by w.place desc) as sequence
    from written w join head h on h.account_id = w.account_id
  ), publications as (
    insert into event_publication (account_id, last_sequence, agent_id, event_ids, tasks, published_at)
    select r.account_id, max(r.sequence), r.agent_id, array_agg(r.id order by r.sequence),
      case when count(r.task) > 0 then array_agg(r.task order by r.sequence) end, p_at
    from (
      -- Short enough to lie within the row.
      select s.*, (row_number() over (partition by s.account_id, s.agent_id, s.run order by s.sequence) - 1) / 50 as part
      from (
        select p.*, p.sequence - row_number() over (partition by p.account_id, p.agent_id order by p.sequence) as run
        from published p
      ) s
    ) r
    group by r.account_id, r.agent_id, r.run, r.part
  ), deliveries as (
    insert into webhook_delivery (id, endpoint_id, event_id, account_id, sequence, type, status, attempts, created_at, next_attempt_at)
    select replace(event_id(p_at), 'evt_', 'whd_'), e.id, p.id, p.account_id, p.sequence, p.type, 'pending', '[]', p_at, p_at
    from published p join webhook_endpoint e on e.account_id = p.account_id and e.status = 'active'
    where case p.type when 'ping' then p.object_id = e.id else cardinality(e.types) = 0 or p.type = any(e.types) end
    returning endpoint_id
  ), mails as (
    insert into owner_mail (destination_hash, sequence, account_id, type, object_id, data, at, due_at, held_until, expires_at)
    select d.destination_hash, p.sequence, p.account_id, p.type, p.object_id, p.data, p.at, t.due_at, p_at, t.due_at + interval '1 day'
    from published p
      join account a on a.id = p.account_id collate "default"
      -- Owners, and of requests for approval all who may decide. Whoever opened the account may have left it.
      join login_destination d on d.channel = 'email' and d.account_id in (
        select a.id where not exists (select from membership m where m.person_id = a.id)
        union all
        select m.person_id from membership m
        where m.account_id = a.id and (m.role = 'owner' or m.role = 'approver' and p.type = 'approval.requested'))
      cross join lateral (select case when p.type = 'approval.requested' and a.approval_mails = 'daily'
        then (date_trunc('day', p_at at time zone 'UTC' - interval '8 hours') + interval '32 hours') at time zone 'UTC'
        else p_at end as due_at) t
    where p.type in ('security.locked', 'security.unlocked', 'wallet.shortfall', 'webhook.disabled', 'schedule.failing')
      or p.type = 'approval.requested' and a.approval_mails <> 'off'
        and not exists (select from notification_channel c where c.destination_hash = d.destination_hash)
      or p.type = 'decision.denied' and p.data->'rules' ? 'payee_changed'
  ), pushes as (
    insert into owner_push (subscription_id, sequence, account_id, type, object_id, data, at, held_until, expires_at)
    select s.id, p.sequence, p.account_id, p.type, p.object_id, p.data, p.at, p_at, p_at + interval '1 day'
    from published p
      join push_subscription s on s.account_id = p.account_id collate "default"
      join session o on o.id = s.session_id and o.revoked_at is null and s.created_at > p_at - interval '30 days'
    where p.type in ('approval.requested', 'security.locked', 'wallet.shortfall', 'webhook.disabled', 'schedule.failing',
        'request.paid', 'request.overpaid', 'request.paid_late')
      or p.type = 'decision.denied' and p.data->'rules' ? 'payee_changed'
  ), messages as (
    insert into owner_message (id, account_id, channel_id, channel_type, about, type, object_id, data, at, held_until, expires_at)
    select replace(event_id(p_at), 'evt_', 'msg_'), p.account_id, c.id, c.type, p.sequence::text, p.type, p.object_id, p.data, p.at, p_at,
      p_at + interval '1 day'
    from published p join notification_channel c on c.account_id = p.account_id collate "default"
    where p.type = 'approval.requested'
      or c.type <> 'email' and (p.type in ('security.locked', 'wallet.shortfall', 'webhook.disabled', 'schedule.failing',
          'request.paid', 'request.overpaid', 'request.paid_late')
        or p.type = 'decision.denied' and p.data->'rules' ? 'payee_changed')
  ), due as (
    -- Without a condition on the row's own values: whoever records attempts right now changes them, and has not seen these deliveries.
    update webhook_endpoint e set due_at = case when e.paused_until is null then least(e.due_at, p_at) else e.due_at end
    where e.id in (select d.endpoint_id from deliveries d)
  )
  select h.account_id, h.last_sequence, (select count(*) from published) from head h;
end $$;
