/**
 * The sandbox's other institutions answer after a second, by their name: a name beginning with `Declining` declines,
 * one beginning with `Silent` never answers, all others accept. May import the base and its port.
 */
import type { Clock } from '../../core/base/clock.ts'
import type { TravelRuleAnswer, TravelRuleNetwork } from './port.ts'

/** Delay of an answer. */
const ANSWER_MS = 1_000

/** Creates the network. Its state is in the reference, so every process gives the same answer. */
export function createSandboxTravelRule(clock: Clock): TravelRuleNetwork {
  const readNow = async (reference: string): Promise<TravelRuleAnswer> => {
    const [behaviour, since] = reference.split('.')
    if (behaviour === 'silent' || clock().getTime() - Number(since) < ANSWER_MS)
      return { status: 'sent', reason: null }
    return behaviour === 'declining'
      ? { status: 'declined', reason: 'The beneficiary is unknown.' }
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
