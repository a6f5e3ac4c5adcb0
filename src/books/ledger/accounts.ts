/**
 * Names of ledger accounts. An owner has three accounts per place: available, held and frozen. External, revenue and
 * receivable accounts belong to the system and may have a negative balance.
 */

/** A ledger account of an owner: `acct_…:<place>:available`, `…:held` or `…:frozen`. Never below zero. */
export type OwnerAccount = `acct_${string}:${string}:${'available' | 'held' | 'frozen'}`

export type SystemAccount = `external:${string}` | `revenue:${string}` | `receivable:${string}`

export type LedgerAccount = OwnerAccount | SystemAccount

/** Account of an owner's spendable money at a place. @param place a chain name, such as `base-sepolia`, or `bank`. */
export function available(accountId: string, place: string): OwnerAccount {
  return `${ownerId(accountId)}:${place}:available`
}

/** Account of an owner's money at a place that is held for unresolved spends. */
export function held(accountId: string, place: string): OwnerAccount {
  return `${ownerId(accountId)}:${place}:held`
}

/** Account of an owner's money that is booked but missing on the chain. It cannot be spent. */
export function frozen(accountId: string, place: string): OwnerAccount {
  return `${ownerId(accountId)}:${place}:frozen`
}

/** Place of the money in a purse: an address from which the gateway signs payments. @param purseId id of the purse. */
export function pursePlace(purseId: string): string {
  return `purse.${purseId}`
}

/** Place of the money in an escrow: what cards have promised, at an address for which the gateway alone signs. */
export function escrowPlace(chain: string): string {
  return `escrow.${chain}`
}

/** Place of the money that was burned and is not minted yet: on its way to a chain, and at no address. */
export function bridgePlace(chain: string): string {
  return `bridge.${chain}`
}

/** Account of the world outside the books at a place: a chain or the banks. */
export function external(place: string): SystemAccount {
  return `external:${place}`
}

/** Account of what owners owe the gateway; debts make its balance negative. */
export function receivable(source: string): SystemAccount {
  return `receivable:${source}`
}

/** Account of the gateway's earnings, such as fees. */
export function revenue(source: string): SystemAccount {
  return `revenue:${source}`
}

/**
 * Account ids start with `acct_`, by which the database recognizes owners.
 * @throws RangeError for any other id: a bug.
 */
function ownerId(accountId: string): `acct_${string}` {
  if (!isOwnerId(accountId)) throw new RangeError(`${accountId} is not the id of an account`)
  return accountId
}

function isOwnerId(accountId: string): accountId is `acct_${string}` {
  return /^acct_[^:]+$/.test(accountId)
}
