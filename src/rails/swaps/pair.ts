/** Resolves the token pair of a swap. */
import { Failure } from '../../core/failures/failure.ts'
import {
  findSwapToken,
  isSwapChain,
  type SwapChain,
  type SwapToken,
  swapChainNames,
  swapChains,
  symbolsOn,
} from '../../core/money/swap-tokens.ts'

/** Names of a pair as the client sends them, in any letter case. @property toChain absent: the same chain. */
export interface PairNames {
  readonly fromToken: string
  readonly toToken: string
  readonly fromChain: string
  readonly toChain: string | undefined
}

/**
 * @throws Failure `invalid_request`, listing the supported names; `pair_not_supported` between a test chain and a
 * main chain.
 */
export function parsePair({ fromToken, toToken, fromChain, toChain }: PairNames): {
  from: SwapToken
  to: SwapToken
} {
  const source = parseChain('fromChain', fromChain)
  const target = toChain === undefined ? source : parseChain('toChain', toChain)
  const from = parseToken('fromToken', source, fromToken)
  const to = parseToken('toToken', target, toToken)
  if (from.symbol === to.symbol && source === target)
    throw invalid(
      'toToken',
      `is ${to.symbol} on ${target}, the same token as fromToken`,
      'Name another token or chain.',
    )
  if (swapChains[source].isTest !== swapChains[target].isTest)
    throw new Failure(
      'pair_not_supported',
      `${from.symbol} on ${source} cannot be swapped to ${to.symbol} on ${target}: one of them is a test chain, whose tokens have no price.`,
      { hint: 'Name two chains of the same kind.' },
    )
  return { from, to }
}

function parseChain(path: string, name: string): SwapChain {
  const known = name.toLowerCase()
  if (isSwapChain(known)) return known
  throw invalid(path, 'is not a supported chain', `Chains: ${swapChainNames.join(', ')}.`)
}

function parseToken(path: string, chain: SwapChain, symbol: string): SwapToken {
  const token = findSwapToken(chain, symbol)
  if (token !== undefined) return token
  throw invalid(
    path,
    `is not a supported token on ${chain}`,
    `Tokens on ${chain}: ${symbolsOn(chain).join(', ')}.`,
  )
}

function invalid(path: string, message: string, hint: string): Failure {
  return new Failure('invalid_request', `${path}: ${message}.`, { issues: [{ path, message }], hint })
}

/**
 * Converts an amount to a token's smallest units.
 * @param amount decimal string.
 * @throws Failure `invalid_request` when it has more fraction digits than the token.
 */
export function unitsIn({ symbol, decimals }: SwapToken, amount: string): bigint {
  const [whole = '0', fraction = ''] = amount.split('.')
  if (fraction.length <= decimals) return BigInt(whole + fraction.padEnd(decimals, '0'))
  const message = `has ${fraction.length} fraction digits; ${symbol} has ${decimals} (amounts are refused, never rounded)`
  throw invalid('amountIn', message, 'Send fewer digits.')
}
