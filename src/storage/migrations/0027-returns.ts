/** What comes back: deposits that the bank takes back, purchases that are returned, approvals that are none any more. */
import { cardAuthorize } from './0014-card-authorize.ts'
import { cardApplyReturns } from './0027-card-apply.ts'

const deposits = `
alter table deposit
  -- What the bank took back and its owner did not have: collected from the owner's cash when there is some.
  add column owed bigint check (owed >= 0);
create index deposit_owed on deposit (id) where owed > 0;
`

// As in 0014, but: what was declined after all is no approval either when it is asked again.
const cardAuthorizeDeclined = cardAuthorize
  .replace('create function', 'create or replace function')
  .replace("a.status in ('voided', 'expired')", "a.status in ('voided', 'expired', 'declined')")

export const returns = deposits + cardAuthorizeDeclined + cardApplyReturns
