/** Relays are listed with an account's own transfers. */
export const relaysByAccount = `
create index relay_by_account on relay (account_id, id);
`
