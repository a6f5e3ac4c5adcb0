/**
 * Reviews: what AML wants a person to see, until one has decided. Released, exactly that spend passes once within a day.
 *
 * Locks: rows are made and used up under the account's advisory lock (level 3 in 0005-budgets); a decision locks its row alone.
 */
export const reviews = `
create table aml_review (
  id text collate "C" primary key,
  account_id text not null references account,
  -- The denial that asks for it.
  decision_id text collate "C" not null unique references decision,
  -- Names exactly the spend among those of its account.
  subject text not null,
  -- The lists that want a person to look. Travel Rule data and listed names have ends of their own.
  lists text[] not null check (cardinality(lists) > 0),
  status text not null check (status in ('open', 'released', 'blocked')),
  created_at timestamptz not null,
  decided_by text references account,
  reason text,
  decided_at timestamptz,
  -- The decision of the spend that passed by it.
  used_by text collate "C" references decision,
  check ((status = 'open') = (decided_at is null)),
  check ((decided_by is null) = (decided_at is null)),
  check ((reason is null) = (decided_at is null)),
  check (used_by is null or status = 'released')
);
create unique index aml_review_open on aml_review (account_id, subject) where status = 'open';
create index aml_review_decided on aml_review (account_id, subject, id) where status <> 'open';

-- The screening that a decision records, as policies/aml/screening.ts writes it.
create function aml_violation(p_lists text) returns jsonb language sql immutable as $$
  select jsonb_build_object('rule', 'aml_screening', 'limit', p_lists, 'used', null, 'requested', 'review',
    'remaining', null, 'resetsAt', null)
$$;

-- Whether a released review lets a spend pass: for a day, once, and again where that spend gave its money back.
create function aml_released(p_account text, p_review text, p_at timestamptz) returns boolean language sql volatile as $$
  select exists (
    select 1 from aml_review r
    where r.id = p_review and r.account_id = p_account and r.status = 'released'
      and r.decided_at > p_at - interval '24 hours'
      and (r.used_by is null or exists (
        select 1 from reservation v where v.decision_id = r.used_by and v.status = 'released')))
$$;

-- The objection of AML at the moment of the reservation; null: none.
create function aml_objection(p_account text, p_windows jsonb, p_released text, p_at timestamptz)
returns jsonb language plpgsql volatile as $$
declare
  v_lists text;
begin
  if p_windows is not null then
    select string_agg(e->>'rule', ',' order by e->>'rule') into v_lists
    from jsonb_array_elements(outflow_exceeded(p_account, p_windows, p_at)) e;
  end if;
  if v_lists is null and p_released is not null and not aml_released(p_account, p_released, p_at) then
    v_lists := coalesce((select array_to_string(r.lists, ',') from aml_review r where r.id = p_released), 'review');
  end if;
  return case when v_lists is not null then aml_violation(v_lists) end;
end $$;

-- Asks a person to look at a spend that was denied; the first such denial stands until they have.
create function aml_ask_review(p_account text, p_decision text, p_subject text, p_screening jsonb, p_at timestamptz)
returns void language sql volatile as $$
  insert into aml_review (id, account_id, decision_id, subject, lists, status, created_at)
  select 'rev_' || substr(p_decision, 5), p_account, p_decision, p_subject, asking.lists, 'open', p_at
  from (
    select array_agg(list order by list) as lists
    from unnest(string_to_array(p_screening->>'limit', ',')) as list
    where list not in ('travel_rule', 'named_party')
  ) asking
  where p_subject is not null and p_screening->>'requested' = 'review' and asking.lists is not null
  on conflict (account_id, subject) where status = 'open' do nothing
$$;
`
