/** The allowance module in memory, as `contracts/AgentAllowance.sol` does it. */
import type { Clock } from '../../clock.ts'
import type { ChainAllowance, WalletCall } from '../chain.ts'
import { allowanceRefusal } from './refusal.ts'
import { allowanceValue, DEVELOPMENT_STARTER_MICROS } from './wallets.ts'

/** The agent that stands for all who have no allowance of their own. */
const ANY_AGENT = ''

/** Allowances of every account. */
export interface SimulatedAllowances {
  set(accountId: string, agentId: string, dailyMicros: bigint): void
  of(accountId: string, agentId: string): ChainAllowance
  /** Counts a payment. @returns why it cannot be made, or undefined. */
  spend(
    accountId: string,
    agentId: string,
    payment: Extract<WalletCall, { kind: 'transfer' }>,
  ): string | undefined
}

/** None given yet: every account has the starter. */
export function createSimulatedAllowances(clock: Clock): SimulatedAllowances {
  const limits = new Map<string, bigint>()
  const spent = new Map<string, { day: string; micros: bigint }>()

  const payerOf = (accountId: string, agentId: string) =>
    `${accountId}|${limits.has(`${accountId}|${agentId}`) ? agentId : ANY_AGENT}`
  const today = () => clock().toISOString().slice(0, 10)
  const spentBy = (payer: string) => {
    const known = spent.get(payer)
    return known?.day === today() ? known.micros : 0n
  }

  function of(accountId: string, agentId: string): ChainAllowance {
    const payer = payerOf(accountId, agentId)
    const own = limits.get(payer)
    return {
      dailyMicros: own ?? DEVELOPMENT_STARTER_MICROS,
      spentMicros: spentBy(payer),
      isOwn: own !== undefined,
    }
  }

  return {
    set: (accountId, agentId, dailyMicros) => void limits.set(`${accountId}|${agentId}`, dailyMicros),
    of,
    spend(accountId, agentId, { token, units }) {
      const value = allowanceValue(token, units)
      const { dailyMicros, spentMicros } = of(accountId, agentId)
      if (spentMicros + value > dailyMicros) return allowanceRefusal([dailyMicros, spentMicros, value])
      spent.set(payerOf(accountId, agentId), { day: today(), micros: spentMicros + value })
      return undefined
    },
  }
}
