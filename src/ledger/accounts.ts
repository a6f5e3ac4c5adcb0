/**
 * Names of ledger accounts. An owner has three for each place: what is available, what is held, and what is frozen. Places and revenues are
 * the system's: money comes from and goes to them, and their balance may be below zero.
 */

/** A ledger account of an owner: `acct_…:<place>:available`, `…:held` or `…:frozen`. Never below zero. */
export type OwnerAccount = `acct_${string}:${string}:${'available' | 'held' | 'frozen'}`

/** A ledger account of the system. */
export type SystemAccount = `external:${string}` | `revenue:${string}` | `receivable:${string}`

/** Any ledger account. */
export type LedgerAccount = OwnerAccount | SystemAccount

/** What an owner can spend at a place. @param place a chain's name, such as `base-sepolia`, or `bank`. */
export function available(accountId: string, place: string): OwnerAccount {
  return `${ownerId(accountId)}:${place}:available`
}

/** What of an owner's money at a place is held for spends whose end is not known yet. */
export function held(accountId: string, place: string): OwnerAccount {
  return `${ownerId(accountId)}:${place}:held`
}

/** An owner's money that the books have and the chain no longer holds: nothing spends it. */
export function frozen(accountId: string, place: string): OwnerAccount {
  return `${ownerId(accountId)}:${place}:frozen`
}

/** The world outside the books at a place: a chain, or the banks. */
export function external(place: string): SystemAccount {
  return `external:${place}`
}

/** What owners owe the gateway: below zero by as much. */
export function receivable(source: string): SystemAccount {
  return `receivable:${source}`
}

/** What the gateway earned, such as fees. */
export function revenue(source: string): SystemAccount {
  return `revenue:${source}`
}

/** The ids of accounts start with `acct_`, by which the database knows owners. @throws RangeError on another id: a bug. */
function ownerId(accountId: string): `acct_${string}` {
  if (!isOwnerId(accountId)) throw new RangeError(`${accountId} is not the id of an account`)
  return accountId
}

function isOwnerId(accountId: string): accountId is `acct_${string}` {
  return /^acct_[^:]+$/.test(accountId)
}
