/** Routes of swaps as they are stored: with the transfer that pays the desk, and with what a signer is asked to sign. */
import { z } from 'zod'
import { stablecoins } from '../../../core/money/money.ts'
import type { SwapRoute } from '../../../providers/chain/port.ts'

const hex = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]*$/)])

const storedRoute = z.strictObject({
  buy: z.enum(stablecoins),
  minReceived: z
    .string()
    .regex(/^\d{1,39}$/)
    .transform(BigInt),
  target: hex,
  spender: hex.nullable(),
  data: hex,
  burn: z.strictObject({ to: z.string(), domain: z.int().min(0), minFinality: z.int().min(0) }).optional(),
})

/** Parses a stored route; null: the transfer is a plain payment. */
export function parseRoute(stored: unknown): SwapRoute | null {
  return stored === null || stored === undefined ? null : storedRoute.parse(stored)
}

/** Route as JSON, without numbers that JSON cannot hold. */
export function routeJson({ buy, minReceived, target, spender, data, burn }: SwapRoute) {
  const route = { buy, minReceived: minReceived.toString(), target, spender, data }
  return burn === undefined ? route : { ...route, burn }
}

/** Checks whether two routes are the same call with the same minimum. */
export function isSameRoute(one: SwapRoute | null, other: SwapRoute | null): boolean {
  if (one === null || other === null) return one === other
  return JSON.stringify(routeJson(one)) === JSON.stringify(routeJson(other))
}
