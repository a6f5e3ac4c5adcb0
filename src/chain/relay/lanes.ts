/**
 * The sponsor on a development node: many addresses, each with one transaction at a time. anvil can lose a
 * transaction that arrives while its predecessor from the same address is mined: it stays queued forever and blocks
 * all later ones. Addresses are free there, so each has at most one pending transaction.
 */
import { keccak256 } from 'viem'
import { type LocalAccount, privateKeyToAccount } from 'viem/accounts'
import { timers } from '../../core/base/timers.ts'
import type { Address, Hex } from '../../providers/chain/port.ts'
import type { NodeClient } from '../rpc/client.ts'
import { developmentFees, makeSponsor } from '../rpc/development-node.ts'
import { awaitReceipt } from './receipts.ts'
import {
  type Relayer,
  requireAcceptedByNode,
  type SponsoredCall,
  type SubmittedTransaction,
} from './relayer.ts'

/** Maximum pending transactions. */
const LANES = 32

/** Default time a caller waits for its transaction to be mined. */
const MINING_TIMEOUT_MS = 10_000

/** How long a lane waits for its transaction before it reads its nonce from the node and is reused. */
const LANE_TIMEOUT_MS = 15_000

interface Lane {
  readonly account: LocalAccount
  /** Next nonce; undefined if it must be read from the node. */
  nonce: number | undefined
}

/** Creates a relayer for a development node. @param seed seed of the sponsor's keys. @param tokens that it may mint. */
export function createLanes(client: NodeClient, seed: Hex, tokens: readonly Address[]): Relayer {
  const deriveAccount = (index: number) =>
    privateKeyToAccount(keccak256(`${seed}${index.toString(16).padStart(4, '0')}`))
  const sponsor = deriveAccount(0)
  const lanes: Lane[] = []
  let forgotten = 0
  const addLane = async (account: LocalAccount) => {
    const lane = await openLane(client, tokens, account)
    lanes.push(lane)
    return lane
  }
  const any = createPool(LANES, (index) => addLane(deriveAccount(index + 1)))
  const own = createPool(1, () => addLane(sponsor))

  async function sendThrough(
    pool: Pool<Lane>,
    call: SponsoredCall,
    waitMs: number,
  ): Promise<SubmittedTransaction> {
    const lane = await pool.take()
    try {
      const nonce = lane.nonce ?? (await readNonce(lane))
      const epoch = forgotten
      lane.nonce = undefined
      const hash = await broadcast(client, lane.account, nonce, call)
      const confirming = awaitReceipt(client, hash, LANE_TIMEOUT_MS).catch(() => undefined)
      // The lane stays busy until its transaction is mined, but the caller does not wait for a slow node.
      void confirming.then((receipt) => {
        if (receipt !== undefined && epoch === forgotten) lane.nonce = nonce + 1
        pool.giveBack(lane)
      })
      const late = timers.sleep(waitMs, { isIdle: true }).then(() => undefined)
      return { hash, receipt: await Promise.race([confirming, late]) }
    } catch (error) {
      pool.giveBack(lane)
      throw error
    }
  }

  // Pending transactions count: after a reorganization a lost transaction leaves a gap, which the next one fills.
  const readNonce = ({ account: { address } }: Lane) =>
    client.getTransactionCount({ address, blockTag: 'pending' })

  return {
    address: sponsor.address,
    forget() {
      forgotten += 1
      for (const lane of lanes) lane.nonce = undefined
    },
    send: (call, waitMs = MINING_TIMEOUT_MS) => sendThrough(any, call, waitMs),
    sendAsSponsor: (call, waitMs = MINING_TIMEOUT_MS) => sendThrough(own, call, waitMs),
  }
}

async function openLane(
  client: NodeClient,
  tokens: readonly Address[],
  account: LocalAccount,
): Promise<Lane> {
  await makeSponsor(client, tokens, account.address)
  return { account, nonce: undefined }
}

/** @returns the hash of the broadcast transaction, with which the caller looks up the result. */
async function broadcast(
  client: NodeClient,
  account: LocalAccount,
  nonce: number,
  { beforeBroadcast, ...call }: SponsoredCall,
): Promise<Hex> {
  const serializedTransaction = await account.signTransaction({
    type: 'eip1559',
    chainId: client.chain.id,
    nonce,
    ...call,
    ...developmentFees,
    value: call.value ?? 0n,
  })
  const hash = keccak256(serializedTransaction)
  await beforeBroadcast?.(hash)
  try {
    return await client.sendRawTransaction({ serializedTransaction })
  } catch (error) {
    await requireAcceptedByNode(client, hash, error)
    return hash
  }
}

interface Pool<Item> {
  take(): Promise<Item>
  giveBack(item: Item): void
}

/** Creates items on demand, up to a limit; further callers wait for a returned item. */
function createPool<Item>(limit: number, make: (index: number) => Promise<Item>): Pool<Item> {
  const free: Item[] = []
  const waiting: (() => void)[] = []
  let made = 0
  // An index is never reused, even after a failure: two lanes must not share a key.
  let nextIndex = 0
  const wakeOne = () => waiting.shift()?.()

  async function makeOne(): Promise<Item> {
    made += 1
    nextIndex += 1
    try {
      return await make(nextIndex - 1)
    } catch (error) {
      made -= 1
      wakeOne()
      throw error
    }
  }

  return {
    async take() {
      for (;;) {
        const item = free.pop()
        if (item !== undefined) return item
        if (made < limit) return makeOne()
        await new Promise<void>((resolve) => waiting.push(resolve))
      }
    },
    giveBack(item) {
      free.push(item)
      wakeOne()
    },
  }
}
