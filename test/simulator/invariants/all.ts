import { booksBalance } from './books-balance.ts'
import { bridgesBooked } from './bridges-booked.ts'
import { budgetsKept } from './budgets-kept.ts'
import { channelsBought } from './channels-bought.ts'
import { channelsCharged } from './channels-charged.ts'
import { clearingsPaidOnce } from './clearings-paid-once.ts'
import { countersAddUp } from './counters-add-up.ts'
import { decisionsSealed } from './decisions-sealed.ts'
import { depositsBooked } from './deposits-booked.ts'
import { incomeReceived } from './income-received.ts'
import type { Invariant } from './invariant.ts'
import { nothingBelowZero } from './nothing-below-zero.ts'
import { nothingHeld } from './nothing-held.ts'
import { ownerCapsKept } from './owner-caps-kept.ts'
import { payersServed } from './payers-served.ts'
import { pricesAccepted } from './prices-accepted.ts'
import { refundsProved } from './refunds-proved.ts'
import { swapsBooked } from './swaps-booked.ts'
import { transfersOnce } from './transfers-once.ts'
import { walletsCovered } from './wallets-covered.ts'

export const invariants: readonly Invariant[] = [
  booksBalance,
  walletsCovered,
  nothingHeld,
  nothingBelowZero,
  budgetsKept,
  countersAddUp,
  ownerCapsKept,
  transfersOnce,
  incomeReceived,
  payersServed,
  channelsCharged,
  channelsBought,
  pricesAccepted,
  refundsProved,
  swapsBooked,
  bridgesBooked,
  depositsBooked,
  clearingsPaidOnce,
  decisionsSealed,
]
