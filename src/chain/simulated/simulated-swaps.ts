/** The swap desk and the market of the simulated chain: what `SwapDesk.sol` and `SandboxPool.sol` would do, at a fixed price. */
import { decodeFunctionData } from 'viem'
import type { Stablecoin } from '../../core/money/money.ts'
import type { Address, Hex, WalletCall } from '../../providers/chain/port.ts'
import { poolAbi, sandboxPoolAddress } from '../../providers/sandbox-market.ts'
import { canonicalContracts, lowerCaseAddress } from '../rpc/networks.ts'
import { type SimulatedNetwork, tokenAt } from './simulated-network.ts'
import type { SimulatedState } from './simulated-state.ts'
import { type CallContext, read, type SimulatedCall } from './simulated-token.ts'

/** Price of a whole token, in millionths of a US dollar. */
const prices: Readonly<Record<Stablecoin, bigint>> = {
  USDC: 1_000_000n,
  USDT: 1_000_000n,
  PYUSD: 1_000_000n,
  EURC: 1_070_500n,
}

/** The market's fee: 5 of 10,000. */
const KEPT = 9_995n

export function isSwapContract(address: Address): boolean {
  return lowerCaseAddress(address) === lowerCaseAddress(sandboxPoolAddress)
}

/** Answers a read of the market. @throws Error for any other call. */
export async function judgePoolCall({ state }: CallContext, data: Hex): Promise<SimulatedCall> {
  const { functionName, args } = decodeFunctionData({ abi: poolAbi, data })
  if (functionName !== 'quote') throw new Error('execution reverted')
  const [sell, buy] = [requireToken(state.network, args[0]), requireToken(state.network, args[1])]
  return read(quote(sell, buy, args[2]))
}

export type SwapCall = Extract<WalletCall, { kind: 'swap' }>

/** Judges a swap. The only route here is the market's. @returns why it would revert, or what it buys. */
export function judgeSwap(
  network: SimulatedNetwork,
  { token: sell, units, to: desk, route }: SwapCall,
): string | bigint {
  if (!isSwapContract(route.target)) return 'the route’s own call fails'
  const { functionName, args } = decodeFunctionData({ abi: poolAbi, data: route.data })
  if (functionName !== 'swap') return 'the route’s own call fails'
  const isAgreed =
    requireToken(network, args[0]) === sell &&
    requireToken(network, args[1]) === route.buy &&
    args[2] === units &&
    lowerCaseAddress(args[4]) === lowerCaseAddress(desk)
  const bought = isAgreed ? quote(sell, route.buy, units) : 0n
  if (bought < args[3]) return 'the route’s own call fails'
  return bought < route.minReceived ? 'the route brings less than the minimum' : bought
}

/** Makes a swap that was judged. @param from wallet that pays, and that gets what was bought. */
export function makeSwap(
  state: SimulatedState,
  {
    call: { token: sell, units, to: desk, route },
    from,
    mark,
    bought,
  }: { call: SwapCall; from: Address; mark: string; bought: bigint },
): void {
  state.move(sell, { from, to: desk, units, mark })
  state.move(sell, { from: desk, to: sandboxPoolAddress, units })
  state.mint(route.buy, desk, bought)
  state.move(route.buy, { from: desk, to: from, units: bought })
}

/** Address of the desk. */
export const simulatedDesk: Address = canonicalContracts.swapDesk

function quote(sell: Stablecoin, buy: Stablecoin, units: bigint): bigint {
  return (units * prices[sell] * KEPT) / (prices[buy] * 10_000n)
}

function requireToken(network: SimulatedNetwork, address: Address): Stablecoin {
  const found = tokenAt(network, address)
  if (found === undefined) throw new Error('execution reverted')
  return found
}
