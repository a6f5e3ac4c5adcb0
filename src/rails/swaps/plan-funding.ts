/** Plans where the money of a payment comes from that its own chain lacks. Reads only: nothing is held, and nothing is sent. */
import { formatUsd } from '../../../policies/usd.ts'
import { balances } from '../../books/ledger/balances.ts'
import type { PlannedSpend } from '../../books/spending/build-spend-request.ts'
import type { FundingFacts } from '../../books/spending/funding-view.ts'
import { transferText } from '../../books/spending/request-text.ts'
import type { TransferRow } from '../../books/spending/spend-request.ts'
import type { Clock } from '../../core/base/clock.ts'
import type { NewId } from '../../core/base/ids.ts'
import { Failure } from '../../core/failures/failure.ts'
import { type Money, type Stablecoin, toDecimal } from '../../core/money/money.ts'
import { minimum } from '../../core/money/shares.ts'
import { findSwapToken, isSwapChain } from '../../core/money/swap-tokens.ts'
import { onChain } from '../../providers/chain/chains.ts'
import { type Rates, valueInUsd } from '../../providers/rates/port.ts'
import type { SwapAggregator } from '../../providers/swap-aggregator/port.ts'
import { planTransfer, type TransferAuthorization } from '../wallets/transfers/send-transfer.ts'
import { FUNDING_WAIT_MS } from './fundings.ts'
import { findVenue, type PlanSwapDependencies, SLIPPAGE_BPS, toExecutable } from './plan-swap.ts'
import { askAll, findSilence } from './quote-swap.ts'
import { buildDeskTransfer } from './send-swap.ts'
import type { ExecutableQuote } from './store.ts'

/** Ways between chains, the one that is taken where it can be first: a payment waits for it. */
const ROUTES = ['cctp-fast', 'cctp-standard'] as const

/** Least that is moved where the other chain has it: less is not worth its gas. Smallest units of USDC. */
const MIN_MOVE = 1_000_000n

/** How often an amount is quoted until what arrives is enough. */
const MAX_QUOTES = 4

export interface PlanFundingDependencies extends PlanSwapDependencies {
  readonly rates: Rates
  readonly newId: NewId
  readonly clock: Clock
  readonly onCalendar: (at: Date) => Date
}

/**
 * A payment that may take money of other chains.
 * @property chain where it is paid. @property mayLeave checks whether money of a chain may be taken. @property authorizedBy by which
 * the burn is made; null: the payment is only simulated. @property withinSec most seconds that a way may be expected to take; absent: any.
 */
export interface FundedPayment {
  readonly accountId: string
  readonly wallet: string | null
  readonly chain: string
  readonly money: Money & { readonly asset: Stablecoin }
  readonly mayLeave: (chain: string) => boolean
  readonly authorizedBy: TransferAuthorization | null
  readonly withinSec?: number
  readonly at: Date
}

export interface PlannedFunding {
  readonly spend: NonNullable<PlannedSpend['funding']>
  readonly facts: FundingFacts
}

/**
 * Plans one move of USDC to the chain of a payment.
 * @returns undefined where the money is there, or no other chain has what lacks.
 * @throws Failure `rates_unavailable`; `provider_unavailable` when the money may be there, and a chain does not answer.
 */
export async function planFunding(
  parts: PlanFundingDependencies,
  payment: FundedPayment,
): Promise<PlannedFunding | undefined> {
  const { accountId, chain, money } = payment
  if (money.asset !== 'USDC') return undefined
  const usdc = (await balances(parts.database, accountId)).filter(({ asset }) => asset === 'USDC')
  const there = usdc.find(({ place }) => place === chain)?.available ?? 0n
  const needed = money.units - minimum(there, money.units)
  if (needed === 0n) return undefined
  const sources = usdc
    .filter(({ place, available }) => place !== chain && available >= needed)
    .filter(({ place }) => parts.chains.all.some(({ name }) => name === place) && payment.mayLeave(place))
    .toSorted((one, other) => (one.available > other.available ? -1 : 1))
  let silence: Failure | undefined
  for (const { place: from, available: has } of sources)
    for (const route of ROUTES) {
      const aggregator = parts.swapAggregators.find(({ tool }) => tool === route)
      if (aggregator === undefined) continue
      const found = await quoteMove(parts, { aggregator, payment, from, needed, has })
      if (found instanceof Failure) silence ??= found
      else if (found !== undefined && found.etaSec <= (payment.withinSec ?? found.etaSec))
        return toFunding(parts, { ...found, payment, needed, from })
    }
  if (silence !== undefined) throw silence
  return undefined
}

interface Move {
  readonly swap: ExecutableQuote
  readonly etaSec: number
}

/**
 * Finds the least that must leave a chain for what is needed to arrive; undefined where the chain has less, or there is no way. A failure
 * where nobody could say.
 */
async function quoteMove(
  parts: PlanFundingDependencies,
  {
    aggregator,
    payment: { chain, wallet },
    from,
    needed,
    has,
  }: {
    readonly aggregator: SwapAggregator
    readonly payment: FundedPayment
    readonly from: string
    readonly needed: bigint
    readonly has: bigint
  },
): Promise<Move | Failure | undefined> {
  const [sold, bought] = [from, chain].map((name) =>
    isSwapChain(name) ? findSwapToken(name, 'USDC') : undefined,
  )
  if (sold === undefined || bought === undefined) return undefined
  const venue = findVenue(parts, { from: sold, to: bought })
  let units = needed > MIN_MOVE ? needed : minimum(MIN_MOVE, has)
  for (let quotes = 0; quotes < MAX_QUOTES && units <= has; quotes += 1) {
    const request = {
      ...{ from: sold, to: bought, amountIn: units, slippageBps: SLIPPAGE_BPS, sender: wallet },
      ...(venue === undefined ? {} : { venue }),
    }
    const { best, failed } = await askAll([aggregator], request)
    const swap = best === undefined ? null : toExecutable(best, venue, units)
    if (best === undefined || swap === null) return findSilence([aggregator], failed)
    const lacking = needed - swap.route.minReceived
    if (lacking <= 0n) return { swap, etaSec: best.durationSec }
    units += lacking
  }
  return undefined
}

async function toFunding(
  parts: PlanFundingDependencies,
  {
    swap,
    etaSec,
    payment,
    needed,
    from,
  }: Move & { readonly payment: FundedPayment; readonly needed: bigint; readonly from: string },
): Promise<PlannedFunding> {
  const { accountId, chain, money, authorizedBy, at } = payment
  const { minReceived } = swap.route
  const source = onChain(parts, from).chain
  const [id, swapId] = [parts.newId('fnd', at), parts.newId('swp', at)]
  const cost = { asset: 'USDC' as const, units: swap.units - minReceived }
  const usdMicros = cost.units === 0n ? 0n : (await valueInUsd(parts.rates, cost, parts.now)).usdMicros
  const buildBurn =
    authorizedBy === null
      ? null
      : planTransfer(
          { ...parts, chain: source },
          { ...buildDeskTransfer(source, swap), accountId, authorizedBy, fundingId: id, at },
        )
  const waitUntil = new Date(parts.onCalendar(at).getTime() + FUNDING_WAIT_MS)
  return {
    spend: {
      ...{ id, place: from, units: swap.units, needed, usdMicros },
      ...(buildBurn === null
        ? {}
        : {
            burn: { from, buildRow: buildBurn },
            buildRow: (decisionId) =>
              writeRow({ chain, money, from, waitUntil, swap, swapId }, buildBurn(decisionId)),
          }),
    },
    facts: {
      ...{ fundingId: id, swapId, route: swap.tool, from, to: chain, etaSec },
      sent: toDecimal({ asset: 'USDC', units: swap.units }),
      minReceived: toDecimal({ asset: 'USDC', units: minReceived }),
      fee: toDecimal(cost),
      usd: formatUsd(usdMicros),
    },
  }
}

/** Members of the rows that the reserve writes: `funding_begin`. */
function writeRow(
  {
    chain,
    money,
    from,
    waitUntil,
    swap,
    swapId,
  }: {
    readonly chain: string
    readonly money: Money
    readonly from: string
    readonly waitUntil: Date
    readonly swap: ExecutableQuote
    readonly swapId: string
  },
  burn: TransferRow,
): string {
  const order = {
    id: swapId,
    units: swap.units.toString(),
    min_received: swap.route.minReceived.toString(),
    expected: swap.expected.toString(),
    fee_micros: swap.feeMicros.toString(),
    route: swap.tool,
  }
  const members = JSON.stringify({
    chain,
    from_chain: from,
    asset: money.asset,
    wanted: money.units.toString(),
    wait_until: waitUntil,
    swap: order,
  })
  return `${members.slice(1, -1)},"burn":${transferText(burn)}`
}
