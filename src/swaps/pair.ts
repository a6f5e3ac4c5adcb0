/** Which two tokens a swap is between. */
import { Failure } from '../failures/failure.ts'
import {
  isSwapChain,
  type SwapChain,
  type SwapToken,
  swapChainNames,
  swapChains,
  swapTokenOf,
  symbolsOn,
} from '../money/swap-tokens.ts'

/** The names of a pair, as a client writes them, in any case. @property toChain absent: the same chain. */
export interface PairNames {
  readonly fromToken: string
  readonly toToken: string
  readonly fromChain: string
  readonly toChain: string | undefined
}

/** @throws Failure `invalid_request` naming what is known, `pair_not_supported` between a test chain and a real one. */
export function pairOf({ fromToken, toToken, fromChain, toChain }: PairNames): {
  from: SwapToken
  to: SwapToken
} {
  const source = chainOf('fromChain', fromChain)
  const target = toChain === undefined ? source : chainOf('toChain', toChain)
  const from = tokenOf('fromToken', source, fromToken)
  const to = tokenOf('toToken', target, toToken)
  if (from.symbol === to.symbol && source === target)
    throw invalid(
      'toToken',
      `is ${to.symbol} on ${target}, which is what would be swapped`,
      'Name another token or chain.',
    )
  if (swapChains[source].isTest !== swapChains[target].isTest)
    throw new Failure(
      'pair_not_supported',
      `There is no way from ${from.symbol} on ${source} to ${to.symbol} on ${target}: one is a test chain, where nothing has a price.`,
      { hint: 'Name two chains of the same kind.' },
    )
  return { from, to }
}

function chainOf(path: string, name: string): SwapChain {
  const known = name.toLowerCase()
  if (isSwapChain(known)) return known
  throw invalid(path, 'is no chain that swaps know', `Chains: ${swapChainNames.join(', ')}.`)
}

function tokenOf(path: string, chain: SwapChain, symbol: string): SwapToken {
  const token = swapTokenOf(chain, symbol)
  if (token !== undefined) return token
  throw invalid(
    path,
    `is no token that swaps know on ${chain}`,
    `Tokens on ${chain}: ${symbolsOn(chain).join(', ')}.`,
  )
}

/** A member of the request that cannot be. */
function invalid(path: string, message: string, hint: string): Failure {
  return new Failure('invalid_request', `${path}: ${message}.`, { issues: [{ path, message }], hint })
}

/** Smallest units of a token. @param amount a decimal's text. @throws Failure `invalid_request` where it has more digits than the token. */
export function unitsIn({ symbol, decimals }: SwapToken, amount: string): bigint {
  const [whole = '0', fraction = ''] = amount.split('.')
  if (fraction.length <= decimals) return BigInt(whole + fraction.padEnd(decimals, '0'))
  const message = `has ${fraction.length} fraction digits; ${symbol} has ${decimals} (amounts are refused, never rounded)`
  throw invalid('amountIn', message, 'Send fewer digits.')
}
