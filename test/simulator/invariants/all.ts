import { booksBalance } from './books-balance.ts'
import { budgetsKept } from './budgets-kept.ts'
import { decisionsSealed } from './decisions-sealed.ts'
import { incomeReceived } from './income-received.ts'
import type { Invariant } from './invariant.ts'
import { nothingHeld } from './nothing-held.ts'
import { ownerCapsKept } from './owner-caps-kept.ts'
import { transfersOnce } from './transfers-once.ts'
import { walletsCovered } from './wallets-covered.ts'

export const invariants: readonly Invariant[] = [
  booksBalance,
  walletsCovered,
  nothingHeld,
  budgetsKept,
  ownerCapsKept,
  transfersOnce,
  incomeReceived,
  decisionsSealed,
]
