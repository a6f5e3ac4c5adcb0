-- Approvals of declined card purchases. They run no call: once approved, the purchase may be tried again, once.

alter table approval
  -- The card of the purchase; null: the approval is for a call.
  add column card_id text collate "C",
  -- The merchant's id and name, as JSON: another merchant does not get the approval.
  add column merchant text,
  -- The amount in smallest units of the card's currency: a retry may ask for less.
  add column units bigint check (units > 0),
  -- When the agent, the card or the account was stopped before the approved purchase was tried again.
  add column ended_at timestamptz,
  add constraint approval_of_purchase
    check ((card_id is null) = (merchant is null) and (card_id is null) = (units is null)),
  add constraint approval_ended check (ended_at is null or card_id is not null and status = 'approved');
create index approval_of_card on approval (card_id)
  where card_id is not null and status = 'approved' and answer is null and problem is null;
