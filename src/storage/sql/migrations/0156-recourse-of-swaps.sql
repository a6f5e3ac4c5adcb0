-- Swaps have recourse too: of one to another chain, the mint that has not come.
alter table recourse drop constraint recourse_object_kind_check;
alter table recourse add constraint recourse_object_kind_check
  check (object_kind in ('purchase', 'card_transaction', 'payout', 'transfer', 'swap'));
