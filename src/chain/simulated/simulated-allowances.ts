/** The allowance module in memory, equivalent to `contracts/AgentAllowance.sol`. */
import type { Clock } from '../../core/base/clock.ts'
import { minimum } from '../../core/money/shares.ts'
import { CARDS_AGENT, type ChainAllowance, type Wallet, type WalletCall } from '../../providers/chain/port.ts'
import { allowanceValue, DEVELOPMENT_CARDS_MICROS, DEVELOPMENT_STARTER_MICROS } from '../accounts/wallets.ts'
import { allowanceRefusal } from '../relay/refusal.ts'

/** Agent id that stands for all agents without an allowance of their own. */
const ANY_AGENT = ''

/** Owner of an allowance, with the amount its hand-over granted to cards. */
type Payer = Pick<Wallet, 'accountId' | 'cardCover'>

export interface SimulatedAllowances {
  set(accountId: string, agentId: string, dailyMicros: bigint): void
  of(wallet: Payer, agentId: string): ChainAllowance
  /** Counts a payment. @returns the reason why it cannot be made, or undefined. */
  spend(
    wallet: Payer,
    agentId: string,
    payment: Extract<WalletCall, { kind: 'transfer' | 'swap' }>,
  ): string | undefined
}

/** Creates empty allowances: every account has the starter allowance. */
export function createSimulatedAllowances(clock: Clock): SimulatedAllowances {
  const limits = new Map<string, bigint>()
  const spent = new Map<string, { day: string; micros: bigint }>()
  const once = new Map<string, bigint>()

  const isOwn = (accountId: string, agentId: string) =>
    agentId === CARDS_AGENT || limits.has(`${accountId}|${agentId}`)
  const namePayer = (accountId: string, agentId: string) =>
    `${accountId}|${isOwn(accountId, agentId) ? agentId : ANY_AGENT}`
  const today = () => clock().toISOString().slice(0, 10)
  const readSpent = (payer: string) => {
    const known = spent.get(payer)
    return known?.day === today() ? known.micros : 0n
  }

  function of({ accountId, cardCover = 0n }: Payer, agentId: string): ChainAllowance {
    const payer = namePayer(accountId, agentId)
    const isCards = agentId === CARDS_AGENT
    return {
      dailyMicros: limits.get(payer) ?? (isCards ? DEVELOPMENT_CARDS_MICROS : DEVELOPMENT_STARTER_MICROS),
      spentMicros: readSpent(payer),
      onceMicros: once.get(payer) ?? (isCards ? cardCover : 0n),
      isOwn: isOwn(accountId, agentId),
    }
  }

  return {
    set(accountId, agentId, dailyMicros) {
      limits.set(`${accountId}|${agentId}`, dailyMicros)
      once.set(`${accountId}|${agentId}`, 0n)
    },
    of,
    spend(wallet, agentId, { token, units }) {
      const value = allowanceValue(token, units)
      const { dailyMicros, spentMicros, onceMicros } = of(wallet, agentId)
      const fromOnce = minimum(value, onceMicros)
      const micros = spentMicros + value - fromOnce
      if (value > fromOnce && micros > dailyMicros) return allowanceRefusal([dailyMicros, spentMicros, value])
      const payer = namePayer(wallet.accountId, agentId)
      once.set(payer, onceMicros - fromOnce)
      spent.set(payer, { day: today(), micros })
      return undefined
    },
  }
}
