/**
 * The sandbox's other institutions: they answer after a second, by their name. One whose name begins with `Declining` declines,
 * one that begins with `Silent` never answers, and every other accepts. May import the base and its port.
 */
import type { Clock } from '../../base/clock.ts'
import type { TravelRuleAnswer, TravelRuleNetwork } from '../travel-rule-network.ts'

/** How long they think. */
const ANSWER_MS = 1_000

/** The network. What it knows is in the reference that it gives out, so every process answers alike. */
export function createSandboxTravelRule(clock: Clock): TravelRuleNetwork {
  const readNow = async (reference: string): Promise<TravelRuleAnswer> => {
    const [behaviour, since] = reference.split('.')
    if (behaviour === 'silent' || clock().getTime() - Number(since) < ANSWER_MS)
      return { status: 'sent', reason: null }
    return behaviour === 'declining'
      ? { status: 'declined', reason: 'The beneficiary is not known here.' }
      : { status: 'accepted', reason: null }
  }
  return {
    send: async ({ institution: { name } }) => {
      const behaviour = /^(declining|silent)/i.exec(name)?.[1]?.toLowerCase() ?? 'accepting'
      const reference = `${behaviour}.${clock().getTime()}`
      return { reference, ...(await readNow(reference)) }
    },
    read: async (reference) => ({ reference, ...(await readNow(reference)) }),
  }
}
