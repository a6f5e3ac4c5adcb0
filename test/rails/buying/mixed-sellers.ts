/** Sellers of every scheme on one chain, for purchases whose ends are compared with it afterwards. */
import type { Chain } from '../../../src/providers/chain/port.ts'
import type { Seeded } from '../../simulator/seeded.ts'
import { type ChannelSeller, connectSellers, startChannelSeller } from './channel-sellers.ts'
import { type FlakySellers, startFlakySellers } from './flaky-sellers.ts'
import { MAXIMUM, startUptoSellers, type UptoSellers } from './upto-sellers.ts'

/** Kinds of {@link startFlakySellers}, the honest ones more often. */
const EXACT = [
  ...['honest', 'honest', 'honest', '504-once', 'drop-before', 'third', 'unsettled', 'unaware'],
  ...['504-after', 'drop-after', 'late', 'changes', 'forgotten'],
]
/** These deliver in the end, in one of the calls for one purchase. */
const HONEST = ['honest', '504-once', 'drop-before', 'third', 'unsettled', 'unaware']
/** Kinds of {@link startUptoSellers}; `stock` is the unmodified server. */
const UPTO = ['stock', 'stock', 'drops', '412-once', 'says-less', 'free', 'free-lie', 'short', 'never']

/** What is bought. @property isHonest the seller delivers in the end. @property isShared others buy at the same URL. */
export interface Order {
  readonly number: number
  readonly scheme: 'exact' | 'upto' | 'channel'
  readonly url: string
  readonly isHonest: boolean
  readonly isShared: boolean
}

export interface MixedSellers {
  readonly chain: Chain
  readonly channels: readonly ChannelSeller[]
  /** Chooses what is bought, and lets a seller by channel lose or refuse an answer now and then. */
  order(random: Seeded, number: number): Order
  close(): Promise<void>
}

export async function startMixedSellers(rpcUrl: string): Promise<MixedSellers> {
  const chain = await connectSellers(rpcUrl)
  const exact: FlakySellers = await startFlakySellers(rpcUrl)
  const upto: UptoSellers = await startUptoSellers(rpcUrl)
  const channels = [
    await startChannelSeller(chain, { delayMs: 20 }),
    await startChannelSeller(chain, { delayMs: 60 }),
  ]
  const chooseExact = (random: Seeded, number: number): Order => {
    const kind = random.oneOf(EXACT)
    const url = `${exact.origin}/${kind}/${number}`
    return { number, scheme: 'exact', url, isHonest: HONEST.includes(kind), isShared: false }
  }
  const chooseUpto = (random: Seeded, number: number): Order => {
    const kind = random.oneOf(UPTO)
    const used = 1 + random.below(Number(MAXIMUM))
    const path = kind === 'stock' ? `/stock?used=${used}&run=${number}` : `/own/${kind}/${number}`
    return {
      ...{ number, scheme: 'upto', url: `${upto.origin}${path}` },
      ...{ isHonest: kind !== 'never', isShared: false },
    }
  }
  const chooseChannel = (random: Seeded, number: number): Order => {
    const seller = random.oneOf(channels)
    if (random.chance(0.15)) seller.lose(1)
    if (random.chance(0.15)) seller.refuse(1)
    if (random.chance(0.05)) seller.setPrice(random.oneOf(['$0.0005', '$0.0007', '$0.0011']))
    // Purchases of one URL by one key go on by terms that are known.
    const isShared = random.chance(0.4)
    const url = `${seller.origin}/call/${isShared ? 'shared' : number}`
    // A seller that was charged and lost its answer does not deliver on a repeat.
    return { number, scheme: 'channel', url, isHonest: false, isShared }
  }
  return {
    chain,
    channels,
    order: (random, number) =>
      random.oneOf([chooseExact, chooseExact, chooseUpto, chooseChannel, chooseChannel])(random, number),
    close: async () => {
      await exact.close()
      await upto.close()
      for (const seller of channels) await seller.close()
      await chain.close()
    },
  }
}
