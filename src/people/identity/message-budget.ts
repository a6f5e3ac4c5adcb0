import type { RateBudget } from '../../providers/rate-limiter/port.ts'

/**
 * The budget of messages of one kind to an address, whatever causes them: texts cost money, and a flood of mails buries the one
 * that matters. @param hash the destination's keyed hash.
 */
export function messageBudget({ hash }: { readonly hash: string }, kind: string): RateBudget {
  return { rateClass: 'messages', client: `${kind}:${hash}`, endsAt: null }
}
