/**
 * USDC from one chain of the gateway to another by CCTP v2: `cctp-standard` waits until the burn is final, `cctp-fast` costs a fee.
 * @see https://developers.circle.com/cctp/concepts/finality-and-block-confirmations
 */
import { hexToBigInt, isHex } from 'viem'
import type { ChainName } from '../../core/money/chains.ts'
import { formatUnits } from '../../core/money/money.ts'
import type { Attester } from '../attester/port.ts'
import { cctpAbi, cctpOn, finality } from '../cctp.ts'
import type { Chain } from '../chain/port.ts'
import type { SwapAggregator, SwapAnswer, SwapRequest } from './port.ts'

type Speed = keyof typeof finality

/** Seconds until an attestation, as Circle’s documents say, with the mint. */
const seconds: Readonly<Record<ChainName, Readonly<Record<Speed, number>>>> = {
  ethereum: { fast: 30, standard: 1_140 },
  base: { fast: 15, standard: 1_140 },
  arbitrum: { fast: 15, standard: 1_140 },
  optimism: { fast: 15, standard: 1_140 },
  // Its burns are final within seconds.
  polygon: { fast: 15, standard: 15 },
  'base-sepolia': { fast: 2, standard: 4 },
  'arbitrum-sepolia': { fast: 2, standard: 4 },
}

const MILLION = 1_000_000n
/** A fee may have risen when the burn is attested; what is not used up arrives. */
const FEE_PERCENT = 120n
const GAS_USD_MICROS = 10_000n

/** @param attester says what it costs. */
export function createCctp(attester: Attester): readonly SwapAggregator[] {
  const create = (speed: Speed): SwapAggregator => ({
    tool: `cctp-${speed}`,
    isLocal: true,
    quote: (request, signal) => quote(attester, { request, speed }, signal),
  })
  return [create('standard'), create('fast')]
}

async function quote(
  attester: Attester,
  { request: { venue, from, to, amountIn }, speed }: { request: SwapRequest; speed: Speed },
  signal: AbortSignal,
): Promise<SwapAnswer> {
  const destination = venue?.destination
  if (venue === undefined || destination === undefined || from.symbol !== 'USDC' || to.symbol !== 'USDC')
    return { status: 'none', reason: 'unsupported_route' }
  const [source, target] = [cctpOn(venue.chain.name), cctpOn(destination.name)]
  const [fees, ...support] = await Promise.all([
    attester.fees({ source: source.domain, destination: target.domain }, signal),
    isSupported(venue.chain, destination.name),
    isSupported(destination, venue.chain.name),
  ])
  const share = fees[speed]
  if (share === null || support.includes(false)) return { status: 'none', reason: 'unsupported_route' }
  const fee = (amountIn * share + MILLION - 1n) / MILLION
  const maxFee = (fee * FEE_PERCENT + 99n) / 100n
  if (maxFee >= amountIn) return { status: 'none', reason: 'no_route' }
  return {
    status: 'offered',
    offer: {
      amountOut: amountIn - fee,
      amountOutMin: amountIn - maxFee,
      outUsdMicros: null,
      fees: [
        {
          name: 'attestation',
          amount: formatUnits(fee, to.decimals),
          token: 'USDC',
          usdMicros: fee,
          included: true,
        },
      ],
      gasUsdMicros: GAS_USD_MICROS,
      priceImpactBps: 0,
      durationSec: seconds[venue.chain.name][speed],
      call: {
        target: source.messenger,
        spender: source.messenger,
        data: '0x',
        burn: { to: destination.name, domain: target.domain, minFinality: finality[speed] },
      },
    },
  }
}

/** Checks whether Circle’s contracts are on a chain, and know the other one. */
async function isSupported(
  { name, signer }: Pick<Chain, 'name' | 'signer'>,
  other: ChainName,
): Promise<boolean> {
  const { domain, messenger, transmitter } = cctpOn(name)
  const remote = cctpOn(other)
  if (!(await signer.getCode({ address: messenger })) || !(await signer.getCode({ address: transmitter })))
    return false
  const [local, known] = await Promise.all([
    signer.readContract({ address: transmitter, abi: cctpAbi, functionName: 'localDomain' }),
    signer.readContract({
      address: messenger,
      abi: cctpAbi,
      functionName: 'remoteTokenMessengers',
      args: [remote.domain],
    }),
  ])
  return local === domain && isHex(known) && hexToBigInt(known) === BigInt(remote.messenger)
}
