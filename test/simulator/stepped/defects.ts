/** Defects of the money functions: each takes a lock, or what is read again after it, out of one of them. */

import type { cardScenes } from './card-scenes.ts'
import type { Edit } from './pauses.ts'
import type { railScenes } from './rail-scenes.ts'
import type { spendingScenes } from './scenes.ts'

/** @property allows what an attacker can do with it. @property scene the scene that finds it. */
export interface Defect {
  readonly name: string
  readonly allows: string
  readonly scene: keyof typeof spendingScenes | keyof typeof cardScenes | keyof typeof railScenes
  readonly edits: readonly Edit[]
}

const nothing = 'null;'
const lockOfSpend = 'perform pg_advisory_xact_lock(hashtextextended(q.account, 0));'
const firstRead = `if exists (select 1 from account a where a.id = q.account and a.status = 'locked') then`

export const defects: readonly Defect[] = [
  {
    name: 'spends do not lock their account',
    allows: 'an agent that sends its calls at once spends the budget of a day several times',
    scene: 'dayBudget',
    edits: [{ routine: 'spend_decide', from: lockOfSpend, to: nothing }],
  },
  {
    name: 'spends lock their key, not their account',
    allows: 'an owner’s agents together spend more than the owner’s cap',
    scene: 'ownerCap',
    edits: [
      {
        routine: 'spend_decide',
        from: lockOfSpend,
        to: 'perform pg_advisory_xact_lock(hashtextextended(coalesce(q.key, q.account), 0));',
      },
    ],
  },
  {
    name: 'a balance is read, then written',
    allows: 'two payments spend one balance, or a deposit is lost',
    scene: 'wallet',
    edits: [
      {
        routine: 'balance_change',
        from: `update balance b set units = b.units + v_change
      where b.account = v_account and b.asset = v_asset and b.units + v_change >= 0;`,
        to: `select b.units into available_units from balance b
      where b.account = v_account and b.asset = v_asset and b.units + v_change >= 0;
      if found then
        update balance b set units = available_units + v_change where b.account = v_account and b.asset = v_asset;
      end if;`,
      },
    ],
  },
  {
    name: 'an idempotency key is looked up, then written',
    allows: 'a call that its client repeats before the answer pays twice',
    scene: 'twins',
    edits: [
      {
        routine: 'spend_decide',
        from: 'perform pg_advisory_xact_lock(hashtext(q.principal), hashtext(q.idempotency_key));',
        to: `if exists (select from idempotency i where i.principal = q.principal and i.key = q.idempotency_key) then
          select r.verdict, true, r.decision_id into o.verdict, o.replayed, o.decision_id
          from spend_replay(q.principal, q.idempotency_key, q.fingerprint) r;
          return;
        end if;`,
      },
      {
        routine: 'spend_decide',
        from: 'where not exists (select from idempotency i where i.principal = q.principal and i.key = q.idempotency_key);',
        to: 'on conflict (principal, key) do update set decision_id = excluded.decision_id;',
      },
    ],
  },
  {
    name: 'the end of a spend does not see that its reservation has changed',
    allows: 'a payment that is refused as it is confirmed returns the money of another hold',
    scene: 'end',
    edits: [
      {
        routine: 'spend_resolve',
        from: 'where v.decision_id = p_decision and v.xmin = r.version;',
        to: 'where v.decision_id = p_decision;',
      },
    ],
  },
  {
    name: 'a part of a spend does not lock its reservation',
    allows: 'two parts that are reported at once take more than was held for their spend',
    scene: 'parts',
    edits: [
      {
        routine: 'spend_take',
        from: 'select * into r from reservation where decision_id = p_decision for update;',
        to: 'select * into r from reservation where decision_id = p_decision;',
      },
    ],
  },
  {
    name: 'the account and the key are read before the lock',
    allows: 'a thief’s calls that wait in line pass after the owner has locked the account',
    scene: 'lock',
    edits: [
      { routine: 'spend_decide', from: lockOfSpend, to: nothing },
      {
        routine: 'spend_decide',
        from: `if o.verdict is not null then
    delete from idempotency`,
        to: `${lockOfSpend}
  if o.verdict is not null then
    delete from idempotency`,
      },
    ],
  },
  {
    name: 'the key is not read again by the spend',
    allows: 'a revoked key pays by calls that were authenticated before',
    scene: 'revocation',
    edits: [
      {
        routine: 'spend_decide',
        from: `v_status is null or v_status = 'revoked' or`,
        to: 'v_status is null or',
      },
    ],
  },
  {
    name: 'a batch locks its accounts in the order of its calls',
    allows: 'clients that name the same owners in turn stop each other’s payments',
    scene: 'batches',
    edits: [
      {
        routine: 'spend_reserve',
        from: `perform pg_advisory_xact_lock(owner.hash)
    from (select distinct hashtextextended(r.account, 0) as hash from unnest(p_requests) r order by 1) owner;`,
        to: `declare v_account text; begin
      for v_account in select r.account from unnest(p_requests) r loop
        perform pg_advisory_xact_lock(hashtextextended(v_account, 0));
      end loop;
    end;`,
      },
    ],
  },
  {
    name: 'a batch locks each balance when a call needs it',
    allows: 'a batch and a posting stop each other',
    scene: 'batches',
    edits: [
      {
        routine: 'spend_reserve',
        from: 'where exists (select from balance b where b.account = p.filled_from and b.asset = r.asset)',
        to: 'where false',
      },
    ],
  },
  {
    name: 'a batch locks each idempotency key when a call needs it',
    allows: 'a batch that is repeated in another order stops the first',
    scene: 'twinBatches',
    edits: [
      {
        routine: 'spend_reserve',
        from: 'where r.idempotency_key is not null',
        to: 'where false',
      },
    ],
  },
  {
    name: 'a batch locks its transfers in the order of their reports',
    allows: 'two gateways that see the same transfers confirmed stop each other',
    scene: 'transfers',
    edits: [
      {
        routine: 'transfer_finish_batch',
        from: `perform 1 from reservation r
    where r.decision_id in (select q.decision from jsonb_to_recordset(p_requests) as q (decision text))
    order by r.decision_id
    for update;`,
        to: `declare v_decision text; begin
      for v_decision in select q.decision from jsonb_to_recordset(p_requests) as q (decision text) loop
        perform 1 from reservation r where r.decision_id = v_decision for update;
      end loop;
    end;`,
      },
    ],
  },
  {
    name: 'an approval is read before the lock',
    allows: 'one approval lets all calls pass that are sent at once',
    scene: 'approval',
    edits: [
      { routine: 'spend_decide', from: lockOfSpend, to: nothing },
      { routine: 'spend_decide', from: firstRead, to: `${lockOfSpend}\n  ${firstRead}` },
    ],
  },
  {
    name: 'reviews and windows of AML are read before the lock',
    allows: 'calls that are sent at once pass one released review each',
    scene: 'review',
    edits: screeningBeforeLock(),
  },
  {
    name: 'reviews and windows of AML are read before the lock',
    allows: 'calls that are sent at once exceed the window that would stop them',
    scene: 'amlWindow',
    edits: screeningBeforeLock(),
  },
  {
    name: 'a transaction that another call has posted keeps its change of balances',
    allows: 'a posting that is sent twice at once takes the money twice',
    scene: 'ledger',
    edits: [
      {
        routine: 'ledger_post',
        from: 'perform balance_change(p_sources || p_destinations, p_assets || p_assets, p_units || v_taken);',
        to: nothing,
      },
    ],
  },
  {
    name: 'a shortage is not checked against a twin that took the money',
    allows: 'a posting that succeeded is reported as refused, and is paid again',
    scene: 'ledger',
    edits: [
      {
        routine: 'ledger_post',
        from: `if exists (select 1 from ledger_transaction where id = p_id) then
      verdict := 'already_posted';
      account := null;`,
        to: `if false then
      account := null;`,
      },
    ],
  },
  {
    name: 'a purchase does not lock its account',
    allows: 'a card that is used in several shops at once exceeds its day',
    scene: 'cardDay',
    edits: [{ routine: 'card_authorize', from: lockOfSpend, to: nothing }],
  },
  {
    name: 'a purchase does not lock the names that the processor gives it',
    allows: 'a purchase that is asked again before the answer fails, and is declined',
    scene: 'cardTwins',
    edits: [
      {
        routine: 'card_authorize',
        from: `perform pg_advisory_xact_lock(hashtext('card'), hashtext(p_token));
  perform pg_advisory_xact_lock(hashtext('card webhook'), hashtext(p_webhook));`,
        to: nothing,
      },
    ],
  },
  {
    name: 'an event of a purchase locks neither the purchase nor its account',
    allows: 'a clearing and a reversal that arrive at once both take the hold, and then another’s',
    scene: 'cardParts',
    edits: [
      {
        routine: 'card_apply',
        from: 'select * into a from card_authorization where processor_token = p_token for update;',
        to: 'select * into a from card_authorization where processor_token = p_token;',
      },
      {
        routine: 'card_apply',
        from: `perform pg_advisory_xact_lock(hashtextextended(a.account_id, 0));
  perform 1 from balance b where b.account > a.account_id || ':' and b.account < a.account_id || ';'
  order by b.account, b.asset for update;`,
        to: nothing,
      },
    ],
  },
  {
    name: 'the end of a pull does not lock the account',
    allows: 'a purchase that is reversed as its money is pulled leaves money that nobody can spend',
    scene: 'pull',
    edits: [
      {
        routine: 'card_pull_end',
        from: 'perform pg_advisory_xact_lock(hashtextextended(r.account_id, 0));',
        to: nothing,
      },
    ],
  },
  {
    name: 'a debt is read without a lock',
    allows: 'two collectors take what is owed twice, or stop each other',
    scene: 'debt',
    edits: [
      {
        routine: 'debt_collect',
        from: 'perform pg_advisory_xact_lock(hashtextextended(v_account, 0));',
        to: nothing,
      },
      {
        routine: 'debt_collect',
        from: 'update debt set tried_at = p_at where id = p_debt and owed > 0 returning * into d;',
        to: 'select * into d from debt where id = p_debt and owed > 0;',
      },
    ],
  },
  {
    name: 'a collector does not lock the account',
    allows: 'a collector and the end of a settlement wait for each other in a circle',
    scene: 'settlement',
    edits: [
      {
        routine: 'debt_collect',
        from: 'perform pg_advisory_xact_lock(hashtextextended(v_account, 0));',
        to: nothing,
      },
    ],
  },
  {
    name: 'a wallet is given without the lock of its account',
    allows: 'an owner empties a wallet of which a purchase was just approved',
    scene: 'gift',
    edits: [
      {
        routine: 'wallet_give',
        from: 'perform pg_advisory_xact_lock(hashtextextended(p_account, 0));',
        to: nothing,
      },
    ],
  },
  {
    name: 'a purse is filled without the lock of the reservation',
    allows:
      'a purchase that is given up as its money arrives takes that of another hold, or waits for it in a circle',
    scene: 'purse',
    edits: [
      {
        routine: 'purse_fill',
        from: 'select * into r from reservation where decision_id = p_decision for update;',
        to: 'select * into r from reservation where decision_id = p_decision;',
      },
    ],
  },
  {
    name: 'a payment does not lock its idempotency key',
    allows: 'a payment that is sent twice at once is two payments',
    scene: 'payment',
    edits: [
      {
        routine: 'purchase_claim',
        from: 'perform pg_advisory_xact_lock(hashtext(p_principal), hashtext(p_key));',
        to: nothing,
      },
    ],
  },
  {
    name: 'a report is booked without the lock of its order',
    allows: 'a report that reaches two gateways is booked on what another has changed meanwhile, and fails',
    scene: 'order',
    edits: [
      {
        routine: 'order_book',
        from: `and (cancel_requested_at is not null) = p_was_canceling
  for update;`,
        to: 'and (cancel_requested_at is not null) = p_was_canceling;',
      },
    ],
  },
]

function screeningBeforeLock(): readonly Edit[] {
  const condition = 'if o.screening is null and (q.windows is not null or q.released is not null) then'
  return [
    {
      routine: 'spend_decide',
      from: lockOfSpend,
      to: `o.screening := aml_objection(q.account, q.windows, q.released, q.at);
  if o.screening is not null then
    o.violations := o.violations || o.screening;
  end if;
  ${lockOfSpend}`,
    },
    { routine: 'spend_decide', from: condition, to: 'if false then' },
  ]
}
