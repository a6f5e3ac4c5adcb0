/**
 * Rails: public descriptions of how money moves, and their status. May import the base and ports. The description is
 * static; the status comes only from the rail's control.
 */
import { Failure } from '../core/failures/failure.ts'
import { type Asset, type Money, type Stablecoin, stablecoins, toDecimal } from '../core/money/money.ts'
import type { PayoutFee } from '../providers/banking/port.ts'
import type { Chain } from '../providers/chain/port.ts'
import type { RailControls, RailId } from '../providers/rail-controls/port.ts'

/**
 * A fee of a payment. @property currency currency that arrives, if the fee depends on it. @property spreadBps what the
 * conversion takes besides, in 1/10,000.
 */
export interface RailFee {
  readonly name: string
  readonly amount: string
  readonly asset: Asset
  readonly currency: string | null
  readonly spreadBps: number
}

/** Description of a rail. `min` and `max` are decimals in its tokens or currencies; null means no own limit. */
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

type RailChain = Pick<Chain, 'name' | 'tokens'>

/** @property chains the default first. @property fxPrice price of an FX quote. @property payoutFees fees by currency. */
export interface RailFacts {
  readonly chains: { readonly all: readonly [RailChain, ...RailChain[]] }
  readonly fxPrice: Money
  readonly payoutFees: readonly PayoutFee[]
}

/** `unknown` while the control cannot be read. */
export interface RailStatus {
  readonly status: 'enabled' | 'disabled' | 'unknown'
  readonly reason: string | null
}

const SMALLEST = '0.000001'

export function describeRails(facts: RailFacts): readonly Rail[] {
  return Object.values(rails(facts))
}

function rails({ chains: { all }, fxPrice, payoutFees }: RailFacts): Readonly<Record<RailId, Rail>> {
  const price = toDecimal(fxPrice)
  const [{ name: chain, tokens }] = all
  const names = all.map(({ name }) => name)
  const held = stablecoins.filter((token) => tokens[token] !== undefined)
  const heldAnywhere = stablecoins.filter((token) => all.some((one) => one.tokens[token] !== undefined))
  return {
    'wallet-transfer': {
      id: 'wallet-transfer',
      kind: 'onchain',
      directions: ['out'],
      currencies: [],
      tokens: heldAnywhere,
      chains: names,
      min: SMALLEST,
      max: null,
      fees: [],
      settlementTime: 'PT5S',
    },
    'wallet-gasless': {
      id: 'wallet-gasless',
      kind: 'onchain',
      // Signers and recipients may be external or our own wallets.
      directions: ['in', 'out'],
      currencies: [],
      // USDT does not support signed payments.
      tokens: heldAnywhere.filter((token) => token !== 'USDT'),
      chains: names,
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
      chains: names,
      min: price,
      max: price,
      fees: [],
      settlementTime: 'PT3S',
    },
    'x402-purchases': {
      id: 'x402-purchases',
      kind: 'x402',
      directions: ['out'],
      currencies: [],
      // Sellers are paid by signed authorizations, which USDT does not support.
      tokens: held.filter((token) => token !== 'USDT'),
      chains: [chain],
      min: SMALLEST,
      max: null,
      fees: [],
      settlementTime: 'PT5S',
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
      tokens: held,
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
      tokens: held,
      chains: [chain],
      min: '0.01',
      max: null,
      fees: [],
      settlementTime: 'P1D',
    },
    'bank-payout': {
      id: 'bank-payout',
      kind: 'bank',
      directions: ['out'],
      currencies: ['USD', 'EUR', 'GBP'],
      tokens: [],
      chains: [],
      min: '1',
      max: '1000000',
      fees: payoutFees.map(({ currency, cents, spreadBps }) => ({
        name: 'payout',
        amount: toDecimal({ asset: 'USD', units: cents }),
        asset: 'USD',
        currency,
        spreadBps,
      })),
      settlementTime: 'P1D',
    },
  }
}

/** Why purchases are limited on some chain, or null. Never fails: an unreadable chain is told by other means. */
export async function describeUptoLimit(
  chains: readonly Pick<Chain, 'name' | 'uptoSupport'>[],
): Promise<string | null> {
  const limits = await Promise.all(
    chains.map(async (chain) => {
      const support = await chain.uptoSupport().catch(() => 'supported')
      return support === 'supported' ? [] : [chain.name]
    }),
  )
  const names = limits.flat()
  return names.length === 0
    ? null
    : `The scheme upto is off on ${names.join(', ')}: its contracts are missing there, or their code is not known.`
}

/** Reads a control for display; an unreadable control is reported as `unknown`, never as enabled. */
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
