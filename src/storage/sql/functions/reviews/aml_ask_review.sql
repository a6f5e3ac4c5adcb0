-- Opens a review of a denied spend. The first such denial stands until a person has decided.
--
-- Locks: none but new rows. The caller holds the account.
create or replace function aml_ask_review(p_account text, p_decision text, p_subject text, p_screening jsonb, p_at timestamptz)
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
