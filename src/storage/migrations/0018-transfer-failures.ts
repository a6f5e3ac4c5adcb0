/** Why a transfer failed, as its caller was told: whoever repeats the call is told the same. */
export const transferFailures = `
alter table transfer add column failure_code text check (failure_code in ('provider_unavailable', 'signature_rejected'));
`
