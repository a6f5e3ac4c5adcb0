-- Names the background jobs whose claim may find something: one read for all jobs that are due at a moment. A condition may be
-- wider than the claim that it stands for, never narrower: one that is too wide costs a claim, one that is too narrow delays work
-- until the job's next sweep.
--
-- Arguments: p_at is the machine's time, p_calendar the time by which money falls due.
-- Locks: none.
create or replace function jobs_with_work(p_at timestamptz, p_calendar timestamptz) returns text[] language plpgsql stable as $$
begin
  return array_remove(array[
    case when exists (
        select from webhook_endpoint w where w.status = 'active' and w.due_at <= p_at and w.busy_until <= p_at)
      then 'deliver-webhooks' end,
    case when exists (select from owner_push p where p.held_until <= p_at) then 'push-owners' end,
    case when exists (select from owner_message m where m.held_until <= p_at) then 'send-messages' end,
    case when exists (select from owner_mail m where m.sent_at is null and m.due_at <= p_at) then 'mail-owners' end,
    case when exists (
        select from transfer t where t.state in ('reserved', 'submitted', 'settlement_pending') and t.updated_at <= p_at)
      or exists (
        select from reservation r cross join lateral decision_read(r.decision_id) d
        where r.status = 'reserved' and d.operation not in ('purchases.buy', 'investing.order', 'banking.payouts.create')
          and (d.operation not like 'cards.%' or d.operation = 'cards.return')
          and not exists (select from transfer t where t.decision_id = d.id)
          and not exists (select from relay o where o.decision_id = d.id))
      then 'settle-pending' end,
    case when exists (select from swap_order o where o.state in ('submitted', 'bridging') and o.updated_at <= p_at)
      then 'settle-swaps' end,
    case when exists (select from funding f where f.state = 'moving') then 'settle-fundings' end,
    case when exists (select from payment p where p.state in ('taking', 'pending') and p.updated_at <= p_at)
      then 'settle-payments' end,
    case when exists (
        select from relay o where o.state in ('reserved', 'submitted', 'settlement_pending') and o.updated_at <= p_at)
      then 'settle-relays' end,
    case when exists (select from purchase p where p.state in ('reserved', 'signed') and p.busy_until <= p_at)
      or exists (
        select from purchase p where p.state = 'settled' and p.escrow_look_at is not null and p.escrow_look_at <= p_at)
      or exists (
        select from reservation r cross join lateral decision_read(r.decision_id) d
        where r.status = 'reserved' and d.operation = 'purchases.buy'
          and not exists (select from purchase p where p.decision_id = d.id))
      then 'settle-purchases' end,
    case when exists (select from channel c where c.status = 'open' or c.status <> 'closed' and c.busy_until <= p_at)
      then 'close-channels' end,
    case when exists (select from recourse r where r.status = 'open' and r.next_at <= p_at) then 'settle-recourse' end,
    case when exists (
        select from investing_order o where o.status in ('new', 'accepted', 'partially_filled') and o.updated_at <= p_at)
      or exists (
        select from reservation r cross join lateral decision_read(r.decision_id) d
        where r.status = 'reserved' and d.operation = 'investing.order'
          and not exists (select from investing_order o where o.decision_id = d.id))
      then 'settle-orders' end,
    case when exists (select from payout p where p.rank < 5 and p.tried_at <= p_at)
      or exists (
        select from prepared_payout p where p.status in ('new', 'awaiting', 'ending') and p.tried_at <= p_at)
      or exists (
        select from reservation r cross join lateral decision_read(r.decision_id) d
        where r.status = 'reserved' and d.operation = 'banking.payouts.create'
          and not exists (select from payout p where p.decision_id = d.id))
      then 'settle-payouts' end,
    case when exists (select from card_early e)
      or exists (
        select from card_authorization a
        where a.status = 'pending' and not a.is_reserve and a.created_at <= p_at - interval '8 days')
      or exists (
        select from card_single_use s join card c on c.id = s.card_id
        where s.ended_at is null and (s.expires_at <= p_at or c.status = 'canceled'
          or exists (
            select from access_key k
            where k.id = any (key_path(c.key_id)) and (k.status = 'revoked' or k.expires_at <= p_at))))
      or exists (select from card_settlement s where s.status = 'sending')
      or exists (select from card_settlement s where s.status = 'refused' and s.next_try_at <= p_at)
      then 'settle-cards' end,
    case when exists (select from card_settlement s where s.status = 'sending')
      or exists (
        select from card_authorization a join card_hold h on h.authorization_id = a.id and h.units > 0
          join wallet w on w.account_id = a.account_id and w.owner->>'kind' <> 'gateway'
        where a.status = 'pending')
      or exists (select from card_pull p where p.status = 'open')
      or exists (
        select from wallet w join balance b on b.account > w.account_id || ':escrow.' and b.account < w.account_id || ':escrow/'
          and b.account like '%:available' and b.units > 0
        where w.escrow is not null)
      then 'pay-cards' end,
    case when exists (
        select from card c
        where c.status <> c.sent_status and (c.status_tried_at is null or c.status_tried_at <= p_at))
      then 'send-card-states' end,
    case when exists (select from debt d where d.owed > 0) then 'collect-debts' end,
    case when exists (
        select from travel_rule t
        where t.vasp_name is not null and t.status in ('required', 'sent') and t.sealed is not null
          and t.created_at > p_at - interval '3 days')
      then 'notify-institutions' end,
    case when exists (select from card_order o where o.status = 'open' and o.tried_at <= p_at)
      or exists (select from virtual_account_order o where o.status = 'open' and o.tried_at <= p_at)
      then 'finish-orders' end,
    case when exists (select from request_arrival a where a.state = 'new')
      or exists (
        select from request_arrival a join deposit d on d.id = a.entry_id
        where a.request_id is not null and a.reversed_at is null and d.rank > 5)
      or exists (
        select from request_arrival a join transfer t on t.id = a.entry_id
        where a.request_id is not null and a.reversed_at is null and t.state = 'failed')
      or exists (
        select from payment_request r where r.status in ('open', 'partly_paid') and r.expires_at <= p_calendar)
      then 'match-requests' end,
    case when exists (
        select from approval a join access_key k on k.id = a.key_id
        where a.status = 'pending' and k.expires_at <= p_calendar)
      or exists (
        select from approval a where a.status = 'pending' and a.expired_at is null and a.expires_at <= p_calendar)
      or exists (select from approval a where a.status = 'approved' and a.answer is null and a.problem is null)
      then 'finish-approvals' end,
    case when exists (select from security_notice n where n.held_until <= p_at) then 'send-notices' end,
    case when exists (select from kyc_application a where a.status = 'pending' and a.updated_at <= p_at)
      then 'settle-reviews' end,
    case when exists (select from movement_review r where not r.is_screened and r.status = 'open') then 'screen-deposits' end,
    case when exists (select from owed_mint m where m.tried_at <= p_at) then 'repay-mints' end
  ], null);
end $$;
