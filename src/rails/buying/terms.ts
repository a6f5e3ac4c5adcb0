/**
 * Purchases: paid URLs, bought for an account under its policy, each paid at most once. May import base, ports, evidence,
 * ledger and spending. Invariants: an authorization leaves the process only after the commit that keeps it and its terms; a
 * purchase signs one authorization, under one nonce, for the known token contracts only; its money stays held until the chain
 * shows that it was paid, or that it never can be.
 */
import { z } from 'zod'
import type { Json } from '../../core/base/json.ts'
import type { Stablecoin } from '../../core/money/money.ts'
import type { PublicAnswer } from '../../providers/public-fetch.ts'

export const protocols = ['x402-v2', 'x402-v1', 'mpp'] as const
export type Protocol = (typeof protocols)[number]

/** HTTP methods by which something can be bought. */
export const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/**
 * `exact`: the price is paid. `upto`: the seller takes what was used, at most the price. `auth-capture`: the price goes into escrow, from
 * which the seller captures. `batch-settlement`: by a voucher of a channel.
 */
export const schemes = ['exact', 'upto', 'auth-capture', 'batch-settlement'] as const
export type Scheme = (typeof schemes)[number]

/** Assets whose contracts take signed authorizations (EIP-3009) and permits (EIP-2612). */
export const payableAssets = ['USDC', 'EURC', 'PYUSD'] as const satisfies readonly Stablecoin[]
export type PayableAsset = (typeof payableAssets)[number]

const hex20 = z.templateLiteral(['0x', z.string()])

/** The terms of a purchase, which its decision records. Amounts are in smallest units, addresses in lower case. */
export const purchaseTerms = z.strictObject({
  purchaseId: z.string(),
  url: z.string(),
  origin: z.string(),
  seller: z.string(),
  resource: z.string(),
  method: z.enum(methods),
  requestHash: z.string(),
  purpose: z.string().nullable(),
  protocol: z.enum(protocols),
  // Decisions of earlier versions lack it.
  scheme: z.enum(schemes).default('exact'),
  network: z.string(),
  asset: z.enum(payableAssets),
  token: hex20,
  payTo: hex20,
  /** The price; of `upto`, the most that is paid. */
  units: z.string().regex(/^\d+$/),
  /** How long the seller lets the payment be valid. */
  seconds: z.int(),
  /** The offer as the seller wrote it: what is signed refers to it. */
  offer: z.json().transform((offer): Json => offer),
  purseId: z.string(),
  travelRuleId: z.string().nullable(),
  /** Number of a block before anything is signed. */
  sinceBlock: z.string().regex(/^\d+$/),
})

export type PurchaseTerms = z.output<typeof purchaseTerms>

/** True for schemes by which each purchase pays from an address of its own: the chain names no purchase otherwise. */
export function hasOwnPurse(scheme: Scheme): boolean {
  return scheme === 'upto' || scheme === 'auth-capture'
}

/** True where our own nonce was never used, and the payment needs nothing on the chain before it. */
export function isSignedFirst({ protocol, scheme }: Pick<PurchaseTerms, 'protocol' | 'scheme'>): boolean {
  return protocol !== 'mpp' && scheme === 'exact'
}

/** An offer as a protocol writes it, not judged. */
export interface ReadOffer {
  readonly protocol: Protocol
  readonly scheme: Scheme
  /** Name of the network as the seller wrote it, and whether it is our chain. */
  readonly network: string
  readonly isOurChain: boolean
  readonly isSupported: boolean
  /** Address that settles `upto`, as the seller wrote it; undefined for other schemes. */
  readonly facilitator?: unknown
  readonly token: string
  readonly payTo: string
  readonly amount: string
  readonly seconds: number
  readonly offer: Json
  readonly description: string | null
}

/** The values of a header, which may occur several times. */
export function headerValues({ headers }: Pick<PublicAnswer, 'headers'>, name: string): readonly string[] {
  return headers.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value)
}
