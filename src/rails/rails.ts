/**
 * Rails: the ways in which money moves here, as anybody may read them, and whether each is on. May import the base and
 * ports. What a rail is lies in this file; whether it is on, its control says, and nothing here ever guesses that.
 */
import { Failure } from '../failures/failure.ts'
import { type Asset, decimalOf, type Money, type Stablecoin, stablecoins } from '../money/money.ts'
import type { RailControls, RailId } from '../providers/rail-controls.ts'

/** What is taken for the use of a rail, above the amount itself. */
export interface RailFee {
  readonly name: string
  readonly amount: string
  readonly asset: Asset
}

/** A rail, whatever its control says. `min` and `max` are decimals of its tokens or currencies; null: no limit of its own. */
export interface Rail {
  readonly id: RailId
  readonly kind: 'onchain' | 'x402' | 'brokerage' | 'card' | 'bank'
  readonly directions: readonly ('in' | 'out')[]
  readonly currencies: readonly Asset[]
  readonly tokens: readonly Stablecoin[]
  readonly chains: readonly string[]
  readonly min: string | null
  readonly max: string | null
  readonly fees: readonly RailFee[]
  /** ISO 8601 duration. */
  readonly settlementTime: string
}

/** What rails depend on. @property chain its name. @property fxPrice of an FX quote. */
export interface RailFacts {
  readonly chain: string
  readonly fxPrice: Money
}

/** What the control of a rail says. `unknown` while it cannot be read. */
export interface RailStatus {
  readonly status: 'enabled' | 'disabled' | 'unknown'
  readonly reason: string | null
}

/** The smallest amount of a stablecoin. */
const SMALLEST = '0.000001'

/** Every rail of this deployment. */
export function describeRails({ chain, fxPrice }: RailFacts): readonly Rail[] {
  return Object.values(rails({ chain, fxPrice }))
}

function rails({ chain, fxPrice }: RailFacts): Readonly<Record<RailId, Rail>> {
  const price = decimalOf(fxPrice)
  return {
    'wallet-transfer': {
      id: 'wallet-transfer',
      kind: 'onchain',
      directions: ['out'],
      currencies: [],
      tokens: stablecoins,
      chains: [chain],
      min: SMALLEST,
      max: null,
      fees: [],
      settlementTime: 'PT5S',
    },
    'wallet-gasless': {
      id: 'wallet-gasless',
      kind: 'onchain',
      // From anybody who signs, to anybody: a wallet of ours as well.
      directions: ['in', 'out'],
      currencies: [],
      // Tether has no signed payments.
      tokens: stablecoins.filter((token) => token !== 'USDT'),
      chains: [chain],
      min: SMALLEST,
      max: null,
      fees: [],
      settlementTime: 'PT5S',
    },
    'x402-fx': {
      id: 'x402-fx',
      kind: 'x402',
      directions: ['in'],
      currencies: [],
      tokens: ['USDC'],
      chains: [chain],
      min: price,
      max: price,
      fees: [],
      settlementTime: 'PT3S',
    },
    investing: {
      id: 'investing',
      kind: 'brokerage',
      directions: ['in', 'out'],
      currencies: ['USD'],
      tokens: [],
      chains: [],
      min: '1',
      max: null,
      fees: [],
      settlementTime: 'PT5S',
    },
    'card-payments': {
      id: 'card-payments',
      kind: 'card',
      directions: ['out'],
      currencies: ['USD'],
      tokens: stablecoins,
      chains: [chain],
      min: '0.01',
      max: null,
      fees: [],
      settlementTime: 'P2D',
    },
    'bank-deposit': {
      id: 'bank-deposit',
      kind: 'bank',
      directions: ['in'],
      currencies: ['USD', 'EUR', 'GBP', 'INR'],
      tokens: stablecoins,
      chains: [chain],
      min: '0.01',
      max: null,
      fees: [],
      settlementTime: 'P1D',
    },
  }
}

/** Reads one control for whoever wants to know: that it cannot be read is an answer here, and never a permission. */
export async function readRailStatus(
  railControls: Pick<RailControls, 'read'>,
  rail: RailId,
): Promise<RailStatus> {
  try {
    const { enabled, reason } = await railControls.read(rail)
    return { status: enabled ? 'enabled' : 'disabled', reason }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { status: 'unknown', reason: error.message }
  }
}
