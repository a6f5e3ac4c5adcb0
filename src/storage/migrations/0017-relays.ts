/** A relay that a token would not take keeps the reason, so that its caller is told the same again. */
export const relayRejections = `
alter table relay add column rejection text
  check (rejection in ('expired', 'not_yet_valid', 'nonce_used', 'signature', 'domain', 'balance', 'refused'));
`
