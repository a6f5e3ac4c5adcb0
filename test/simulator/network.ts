/**
 * The chain of a simulated world: the sandbox's simulated chain behind a mempool that delays, hides and drops transactions, and
 * with blocks that are replaced. Nodes that lose calls and answers stand between it and each gateway.
 */
import { createSimulatedChain } from '../../src/chain/simulated/simulated.ts'
import { fakeHash } from '../../src/chain/simulated/simulated-state.ts'
import { silentLog } from '../../src/core/base/log.ts'
import type { ChainName } from '../../src/core/money/chains.ts'
import type { AuthorizedOperation, Chain, EvmSigner, Submission } from '../../src/providers/chain/port.ts'
import type { GatewayGraph } from './load-gateway.ts'
import type { Owner, Scheduler } from './scheduler.ts'
import type { Seeded } from './seeded.ts'

/** Shares of calls, from 0 to 1, that meet a fault. */
export interface ChainFaults {
  /** The node does not answer, and nothing was done. */
  lostBefore: number
  /** It was done, and the answer is lost. */
  lostAfter: number
  /** A transaction waits in the mempool. */
  pending: number
  /** Of these: never mined. */
  dropped: number
  /** Of these: unknown to the gateway's node, and may still be mined. */
  hidden: number
  /** Of calls of contracts: the answer is lost, and it is done later. */
  late: number
}

export const noFaults: ChainFaults = {
  lostBefore: 0,
  lostAfter: 0,
  pending: 0,
  dropped: 0,
  hidden: 0,
  late: 0,
}
const MAX_LATE_MS = 30_000
/** Gateways assume that no block is replaced after ten minutes; their clocks may be wrong by some seconds. */
const MAX_REPLACED_MS = 9 * 60_000

type Change =
  | { readonly kind: 'mint'; readonly input: Parameters<Chain['mint']>[0] }
  | { readonly kind: 'submit'; readonly input: AuthorizedOperation }
  | { readonly kind: 'writeContract'; readonly input: Parameters<EvmSigner['writeContract']>[0] }
  | { readonly kind: 'sendTransaction'; readonly input: Parameters<EvmSigner['sendTransaction']>[0] }
  | { readonly kind: 'callAs'; readonly input: Parameters<Chain['callAs']> }

/** A gateway's node. */
export interface Node {
  readonly owner: Owner
  readonly graph: GatewayGraph
  /** Blocks were replaced since the gateway asked last. */
  hasReplaced: boolean
}

/** As a node's client has it: whether the node took the call is unknown. */
function lost(label: string): Error {
  const cause = Object.assign(new Error('no answer in time'), { name: 'TimeoutError' })
  return new Error(`the answer of ${label} was lost`, { cause })
}

interface Parts {
  readonly name: ChainName
  readonly scheduler: Scheduler
  readonly random: Seeded
  readonly world: Owner
}

export class Network {
  faults: ChainFaults = noFaults
  reorganizations = 0
  readonly nodes = new Set<Node>()
  readonly #scheduler: Scheduler
  readonly #random: Seeded
  readonly #world: Owner
  readonly #mempool = new Map<string, { isHidden: boolean }>()
  readonly #name: ChainName
  #inner: Chain
  /** Changes that became blocks, in order, to be made again when blocks are replaced. */
  #mined: (Change & { readonly at: number })[] = []
  #at: number | undefined
  /** As it was before the blocks that may be replaced. @property changes that were made there. */
  #old: { readonly chain: Chain; changes: number } | undefined
  #turn: Promise<unknown> = Promise.resolve()
  /** Calls of contracts that are still to be done. */
  #late = 0
  /** Blocks from here on have other hashes than before. */
  #replaced: { readonly from: bigint; readonly salt: number }[] = []

  private constructor(inner: Chain, parts: Parts) {
    this.#inner = inner
    this.#name = parts.name
    this.#scheduler = parts.scheduler
    this.#random = parts.random
    this.#world = parts.world
  }

  static async open(parts: Parts): Promise<Network> {
    const placeholder = {} as Chain
    const network = new Network(placeholder, parts)
    network.#inner = await network.#createChain()
    return network
  }

  /** The chain as it is, for the world. */
  get chain(): Chain {
    return this.#inner
  }

  get isIdle(): boolean {
    return this.#mempool.size === 0 && this.#late === 0
  }

  /** Makes a change as the next block. */
  mine(change: Change): Promise<unknown> {
    return this.#alone(() => this.#mineAlone(change))
  }

  /** Replaces the last blocks: some of their transactions come back in other blocks, some never. */
  reorganize(depth: number): Promise<number> {
    return this.#alone(async () => {
      const young = this.#mined.findIndex(({ at }) => at > this.#scheduler.now - MAX_REPLACED_MS)
      const oldest = young === -1 ? this.#mined.length : young
      const removed = this.#mined.splice(Math.max(oldest, this.#mined.length - depth))
      if (removed.length === 0) return 0
      this.reorganizations += 1
      this.#replaced.push({ from: BigInt(this.#mined.length + 1), salt: this.reorganizations })
      this.#inner = await this.#createChain()
      for (const change of this.#mined) await this.#apply(change)
      for (const node of this.nodes) node.hasReplaced = true
      // Mints come back, or the sandbox's own money would be gone.
      for (const change of removed)
        if (change.kind === 'mint' || this.#random.chance(0.5)) await this.#mineAlone(change).catch(() => {})
      return removed.length
    })
  }

  /** The chain as a gateway sees it. */
  view(node: Node): Chain {
    const { owner, graph } = node
    const inner = () => this.#inner
    const call = <Result>(label: string, work: () => Promise<Result>, isWrite = false): Promise<Result> => {
      const pause = (most: number) => (this.#random.below(3) === 0 ? this.#random.below(most) : 0)
      return this.#scheduler.port(
        owner,
        label,
        async () => {
          const down = () =>
            new graph.Failure('provider_unavailable', `The chain does not answer (${label}).`, {
              retryAfter: 1,
            })
          if (this.#random.chance(this.faults.lostBefore)) throw down()
          const answer = await this.#scheduler.track(work())
          if (this.#random.chance(this.faults.lostAfter)) throw isWrite ? lost(label) : down()
          return answer
        },
        { before: pause(80), after: pause(200) },
      )
    }
    const read = <Name extends keyof Chain>(name: Name): Chain[Name] =>
      ((...args: unknown[]) =>
        call(
          name,
          async (): Promise<unknown> => Reflect.apply(inner()[name] as never, inner(), args),
        )) as Chain[Name]
    const mark = ({ wallet, id }: AuthorizedOperation) => `${wallet.accountId}|${wallet.isEscrow}|${id}`
    return {
      ...this.#inner,
      onReset: () => {},
      close: async () => void this.nodes.delete(node),
      signer: {
        ...this.#inner.signer,
        readContract: (input) => call('readContract', () => inner().signer.readContract(input)),
        waitForTransactionReceipt: (input) =>
          call('receipt', () => inner().signer.waitForTransactionReceipt(input)),
        writeContract: (input) => call('writeContract', async () => this.#write(input) as never, true),
        sendTransaction: (input) =>
          call('sendTransaction', () => this.mine({ kind: 'sendTransaction', input }) as never, true),
      },
      modules: read('modules'),
      readBalance: read('readBalance'),
      authorizationState: read('authorizationState'),
      isAuthorizationOver: read('isAuthorizationOver'),
      uptoSupport: read('uptoSupport'),
      permitState: read('permitState'),
      isPermitOver: read('isPermitOver'),
      channelSupport: read('channelSupport'),
      channelState: (id, at) =>
        call('channelState', async () =>
          (at === 'final' ? await this.#final() : inner()).channelState(id, at),
        ),
      channelPayouts: read('channelPayouts'),
      escrowSupport: read('escrowSupport'),
      escrowState: (hash, at) =>
        call('escrowState', async () =>
          (at === 'final' ? await this.#final() : inner()).escrowState(hash, at),
        ),
      callAs: (...input) =>
        call('callAs', async () => void (await this.mine({ kind: 'callAs', input })), true),
      transaction: read('transaction'),
      findDelivery: read('findDelivery'),
      findTransfers: read('findTransfers'),
      blockNumber: read('blockNumber'),
      latestBlockAt: read('latestBlockAt'),
      readAllowance: read('readAllowance'),
      submit: (input) => call('submit', () => this.#submit(input, mark(input)), true),
      mint: (input) => call('mint', async () => void (await this.mine({ kind: 'mint', input })), true),
      awaitExecution: async (operation, waitMs) => {
        const isPending = () => this.#mempool.get(mark(operation))?.isHidden === false
        for (let waited = 0; waited < waitMs && isPending(); waited += 500)
          await this.#scheduler.sleep(owner, 500)
        return call('awaitExecution', async () =>
          isPending() ? { status: 'pending' } : inner().awaitExecution(operation, 0),
        )
      },
      areBlocksReplaced: () =>
        call('areBlocksReplaced', async () => {
          const { hasReplaced } = node
          node.hasReplaced = false
          return hasReplaced
        }),
      block: (number) =>
        call('block', async () => {
          const block = await inner().block(number)
          return block && { ...block, hash: this.#hashBlock(number) }
        }),
    }
  }

  async #submit(operation: AuthorizedOperation, mark: string): Promise<Submission> {
    const transactionHash = fakeHash(`transfer ${mark}`)
    if (this.#mempool.has(mark)) return { status: 'submitted', transactionHash }
    const { wallet, call } = operation
    const fits =
      call.kind !== 'transfer' ||
      (await this.#inner.readBalance(call.token, await this.#inner.walletAddress(wallet))) >= call.units
    const isNew = (await this.#inner.awaitExecution(operation, 0)).status === 'absent'
    if (!fits || !isNew || !this.#random.chance(this.faults.pending))
      return (await this.mine({ kind: 'submit', input: operation })) as Submission
    this.#mempool.set(mark, { isHidden: this.#random.chance(this.faults.hidden) })
    const isDropped = this.#random.chance(this.faults.dropped)
    this.#scheduler.after(this.#world, 500 + this.#random.below(20_000), 'mine', () => {
      this.#mempool.delete(mark)
      if (!isDropped) void this.#scheduler.track(this.mine({ kind: 'submit', input: operation }))
    })
    return { status: 'submitted', transactionHash }
  }

  /** @throws Error when the answer is lost; the call is done later, or refused then. */
  #write(input: Parameters<EvmSigner['writeContract']>[0]): Promise<unknown> {
    if (!this.#random.chance(this.faults.late)) return this.mine({ kind: 'writeContract', input })
    this.#late += 1
    this.#scheduler.after(this.#world, 500 + this.#random.below(MAX_LATE_MS), 'mine', () => {
      const mining = this.mine({ kind: 'writeContract', input }).catch(() => {})
      void this.#scheduler.track(mining).finally(() => {
        this.#late -= 1
      })
    })
    throw lost('writeContract')
  }

  #hashBlock(number: bigint) {
    const salt = this.#replaced.findLast(({ from }) => number >= from)?.salt ?? 0
    return fakeHash(`block ${number} ${salt}`)
  }

  /** The chain without the blocks that may be replaced. */
  #final(): Promise<Chain> {
    return this.#alone(async () => {
      this.#old ??= { chain: await this.#createChain(), changes: 0 }
      const { chain } = this.#old
      for (;;) {
        const change = this.#mined[this.#old.changes]
        if (change === undefined || change.at > this.#scheduler.now - MAX_REPLACED_MS) return chain
        this.#old.changes += 1
        await this.#apply(change, chain)
      }
    })
  }

  #createChain(): Promise<Chain> {
    const clock = () => new Date(this.#at ?? this.#scheduler.now)
    const identity = this.#name === 'base-sepolia' ? 'simulated' : `simulated ${this.#name}`
    return createSimulatedChain({ clock, log: silentLog, identity, name: this.#name })
  }

  /** One change at a time, or it could not be made again in the same order. */
  #alone<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#turn.then(work)
    this.#turn = turn.catch(() => {})
    return turn
  }

  async #mineAlone(change: Change): Promise<unknown> {
    const entry = { ...change, at: this.#scheduler.now }
    const before = await this.#inner.blockNumber()
    const answer = await this.#apply(entry)
    if ((await this.#inner.blockNumber()) > before) this.#mined.push(entry)
    return answer
  }

  async #apply(change: Change & { readonly at: number }, chain = this.#inner): Promise<unknown> {
    this.#at = change.at
    try {
      switch (change.kind) {
        case 'mint':
          return await chain.mint(change.input)
        case 'submit':
          return await chain.submit(change.input)
        case 'callAs':
          return await chain.callAs(...change.input)
        case 'writeContract':
          return await chain.signer.writeContract(change.input)
        case 'sendTransaction':
          return await chain.signer.sendTransaction(change.input)
      }
    } finally {
      this.#at = undefined
    }
  }
}
