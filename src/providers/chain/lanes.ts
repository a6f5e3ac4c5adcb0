/**
 * The sponsor on a development node: many addresses, each with one transaction at a time. anvil can lose a transaction
 * whose predecessor from the same address is mined while it arrives: it stays queued for ever, and all after it. Addresses
 * cost nothing there, so no two transactions of one address ever meet.
 */
import { keccak256 } from 'viem'
import { type LocalAccount, privateKeyToAccount } from 'viem/accounts'
import type { Hex } from '../chain.ts'
import type { NodeClient } from './client.ts'
import { developmentFees, makeSponsor } from './development-node.ts'
import { baseSepolia } from './networks.ts'
import { awaitReceipt } from './receipts.ts'
import { type Relayer, requireTaken, type Sent, type SponsoredCall } from './relayer.ts'

/** How many transactions may be on their way at once. */
const LANES = 32

/** How long one transaction may take to be mined. */
const MINING_TIMEOUT_MS = 10_000

interface Lane {
  readonly account: LocalAccount
  /** What the next transaction is numbered; undefined where the node must be asked. */
  nonce: number | undefined
}

/** A relayer for a development node. @param seed what the sponsor's keys are made from. */
export function createLanes(client: NodeClient, seed: Hex): Relayer {
  const accountOf = (index: number) =>
    privateKeyToAccount(keccak256(`${seed}${index.toString(16).padStart(4, '0')}`))
  const sponsor = accountOf(0)
  const any = createPool(LANES, (index) => openLane(client, accountOf(index + 1)))
  const own = createPool(1, () => openLane(client, sponsor))

  async function sendThrough(pool: Pool<Lane>, call: SponsoredCall): Promise<Sent> {
    const lane = await pool.take()
    try {
      const nonce = lane.nonce ?? (await client.getTransactionCount({ address: lane.account.address }))
      lane.nonce = undefined
      const sent = await sendAndConfirm(client, lane.account, nonce, call)
      lane.nonce = nonce + 1
      return sent
    } finally {
      pool.giveBack(lane)
    }
  }

  return {
    address: sponsor.address,
    send: (call) => sendThrough(any, call),
    sendAsSponsor: (call) => sendThrough(own, call),
  }
}

async function openLane(client: NodeClient, account: LocalAccount): Promise<Lane> {
  await makeSponsor(client, account.address)
  return { account, nonce: undefined }
}

async function sendAndConfirm(
  client: NodeClient,
  account: LocalAccount,
  nonce: number,
  call: SponsoredCall,
): Promise<Sent> {
  const serializedTransaction = await account.signTransaction({
    type: 'eip1559',
    chainId: baseSepolia.id,
    nonce,
    ...call,
    ...developmentFees,
    value: call.value ?? 0n,
  })
  const hash = keccak256(serializedTransaction)
  try {
    await client.sendRawTransaction({ serializedTransaction })
  } catch (error) {
    await requireTaken(client, hash, error)
  }
  // It is broadcast: whoever asked looks it up by its hash.
  return { hash, receipt: await awaitReceipt(client, hash, MINING_TIMEOUT_MS).catch(() => undefined) }
}

interface Pool<Item> {
  take(): Promise<Item>
  giveBack(item: Item): void
}

/** Makes items as they are needed, up to a limit; whoever comes then waits for one to be given back. */
function createPool<Item>(limit: number, make: (index: number) => Promise<Item>): Pool<Item> {
  const free: Item[] = []
  const waiting: (() => void)[] = []
  let made = 0
  // An index is never given twice, also where making failed: two lanes must not share a key.
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
