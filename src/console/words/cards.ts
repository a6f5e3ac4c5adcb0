/** Card purchases in words. */

/** Reasons of a decline, as the owner would say them. `{agent}` is the name of the card's agent. */
const declines: Readonly<Record<string, string>> = {
  insufficient_funds: 'There was too little money in what the card pays from.',
  debt_owed: 'The account owes money, so the card is stopped until it is paid.',
  card_frozen: 'The card was frozen.',
  card_canceled: 'The card was cancelled.',
  card_used: 'The card was for one purchase, which it has made.',
  channel_off: 'This way of paying is switched off on this card.',
  merchant_denied: 'You ruled out this kind of shop on this card.',
  purchase_limit: 'More than the card may pay at a time.',
  daily_limit: 'More than was left of the card’s day.',
  budget_exceeded: 'More than was left of the agent’s budget.',
  policy_denied: 'The agent’s policy does not allow it.',
  approval_required:
    'It was above the amount that you want to approve. Approve it, and it can be tried again.',
  account_locked: 'The account was locked.',
  kyc_required: 'Your identity must be verified before cards work.',
  key_not_active: 'The agent of this card was stopped.',
  rail_disabled: 'Card payments were switched off.',
  unknown_card: 'The card was not known.',
  too_late: 'The decision came too late for the network.',
  unavailable: 'It could not be checked, so it was declined.',
}

export function declineInWords(reason: string): string {
  return declines[reason] ?? reason.replaceAll('_', ' ')
}

const singleUseStates: Readonly<Record<string, string>> = {
  open: 'Waiting for its purchase',
  authorized: 'Its purchase is open',
  used: 'Used',
  expired: 'Not used in time',
  canceled: 'Cancelled',
}

export function singleUseState(status: string): string {
  return singleUseStates[status] ?? status.replaceAll('_', ' ')
}

/** `Example Books, Books, in US`; null: any. */
export function describeMerchant({
  name,
  mcc,
  country,
}: {
  readonly name: string | null
  readonly mcc: string | null
  readonly country: string | null
}): string | null {
  const words = [name, nameCategory(mcc), country === null ? null : `in ${country}`].filter(
    (word) => word !== null,
  )
  return words.length === 0 ? null : words.join(', ')
}

/** Merchant categories that people meet most (ISO 18245). */
const categories: Readonly<Record<string, string>> = {
  '4111': 'Transport',
  '4121': 'Taxi',
  '4511': 'Airline',
  '4814': 'Telephone',
  '4816': 'Internet services',
  '4900': 'Utilities',
  '5411': 'Groceries',
  '5499': 'Food',
  '5541': 'Fuel',
  '5732': 'Electronics',
  '5734': 'Software',
  '5812': 'Restaurant',
  '5814': 'Fast food',
  '5817': 'Digital goods',
  '5818': 'Digital goods',
  '5912': 'Pharmacy',
  '5942': 'Books',
  '5999': 'Shop',
  '6011': 'Cash machine',
  '7011': 'Hotel',
  '7372': 'Software',
  '7995': 'Gambling',
}

/** `Books`; the code itself where it has no common name. */
export function nameCategory(mcc: string | null): string | null {
  return mcc === null ? null : (categories[mcc] ?? `Category ${mcc}`)
}
