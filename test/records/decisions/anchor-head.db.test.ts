/** The head of a day is fixed once, sent by one gateway, and looked up before it is sent again, wherever a gateway was killed. */
import { beforeAll, expect, it } from 'vitest'
import { createSimulatedChain } from '../../../src/chain/simulated/simulated.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import type { CalledTransaction, Hex } from '../../../src/providers/chain/port.ts'
import { type AnchoringParts, anchorHead, encodeAnchor } from '../../../src/records/decisions/anchor-head.ts'
import { readAnchoredHeads } from '../../../src/records/decisions/anchor-store.ts'
import { createSealRound } from '../../../src/records/decisions/seal-decisions.ts'
import { deriveSigningKey } from '../../../src/records/decisions/signing-key.ts'
import { readHead, sealedPages } from '../../../src/records/decisions/store.ts'
import { verifyChain } from '../../../src/records/decisions/verify-chain.ts'
import { noon } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import { insertDecisions, never, readChain, sealingDependencies, settings } from './scene.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
const midnight = new Date(Math.ceil(noon.getTime() / DAY_MS) * DAY_MS)
const killed = new Error('killed')

/** A public chain in memory: blocks come by themselves and can be replaced. @property broadcast what reached it. */
async function createPublicChain() {
  const clock = () => noon
  const simulated = await createSimulatedChain({ clock, log: silentLog })
  const broadcast: Hex[] = []
  const gone = new Set<Hex>()
  const chain = {
    ...simulated,
    isGasFree: false,
    confirmations: 2n,
    above: 0n,
    isHeld: false,
    blockNumber: async () => (await simulated.blockNumber()) + chain.above,
    transaction: async (hash: Hex): Promise<CalledTransaction | undefined> =>
      gone.has(hash) || chain.isHeld ? undefined : simulated.transaction(hash),
    signer: {
      ...simulated.signer,
      address: simulated.signer.address,
      sendTransaction: async (
        transaction: Parameters<AnchoringParts['chain']['signer']['sendTransaction']>[0],
      ) => {
        const hash = await simulated.signer.sendTransaction(transaction)
        broadcast.push(hash)
        return hash
      },
    },
  }
  return { chain, broadcast, replaceBlocks: () => void broadcast.map((hash) => gone.add(hash)) }
}

onBothEngines('anchoring', (database) => {
  let day = 0
  beforeAll(async () => {
    const next = new Date(midnight.getTime() + 60 * MINUTE_MS)
    for (const [count, at] of [
      [3, noon],
      [2, next],
    ] as const) {
      await insertDecisions(database(), count, {}, at)
      await createSealRound(sealingDependencies(database(), () => at))(never)
    }
  })

  /** A gateway on a chain of its own, ten minutes after a day that no other test has. */
  async function scene() {
    const network = await createPublicChain()
    const time = { now: new Date(midnight.getTime() + day * DAY_MS + 10 * MINUTE_MS) }
    const name = new Date(midnight.getTime() + (day - 1) * DAY_MS).toISOString().slice(0, 10)
    // Days before are given up in the first round.
    day += 3
    const parts: AnchoringParts = {
      database: database(),
      chain: network.chain,
      clock: () => time.now,
      onCalendar: (at) => at,
      log: silentLog,
      settings: { anchorChain: 'base-sepolia' },
    }
    return {
      ...network,
      parts,
      day: name,
      round: (changes: Partial<AnchoringParts> = {}) => anchorHead({ ...parts, ...changes }, never),
      pass: (minutes: number) => {
        time.now = new Date(time.now.getTime() + minutes * MINUTE_MS)
      },
      read: () =>
        database()
          .kysely.selectFrom('decision_anchor')
          .selectAll()
          .where('day', '=', name)
          .executeTakeFirst(),
    }
  }

  it('writes the head on the chain that is configured, once it has ended, and confirms it below enough blocks', async () => {
    const { round, read, chain, broadcast, parts } = await scene()
    await round({ settings: { anchorChain: 'base' } })
    await round({ settings: { anchorChain: null } })
    await round({ clock: () => new Date(midnight.getTime() + MINUTE_MS) })
    expect(await read()).toBeUndefined()
    await round()
    // Two decisions of the next day are sealed already.
    const hash = (await readChain(database()))[2]?.hash
    expect((await readHead(database())).sequence).toBe(5n)
    expect(await read()).toMatchObject({ sequence: 3n, hash, state: 'sent', transaction_hashes: broadcast })
    const [sent = '0x'] = broadcast
    expect((await chain.transaction(sent))?.calldata).toBe(
      `0x${Buffer.from('bursar-anchor/1').toString('hex')}${hash}0000000000000003`,
    )
    chain.above = 1n
    await round()
    expect((await read())?.state).toBe('sent')
    chain.above = 2n
    await round()
    await round()
    expect(await read()).toMatchObject({
      state: 'confirmed',
      transaction_hash: sent,
      sender: parts.chain.signer.address,
    })
    expect(broadcast).toHaveLength(1)
  })

  it('sends once from two gateways at the same time', async () => {
    const { round, broadcast } = await scene()
    await Promise.all(Array.from({ length: 6 }, () => round()))
    expect(broadcast).toHaveLength(1)
  })

  it('sends again after a kill before the broadcast, once the transaction is taken for lost', async () => {
    const { round, pass, read, broadcast, parts } = await scene()
    const { signer } = parts.chain
    const dying = {
      ...parts.chain,
      signer: {
        ...signer,
        address: signer.address,
        sendTransaction: async ({ beforeBroadcast }: Parameters<typeof signer.sendTransaction>[0]) => {
          await beforeBroadcast?.('0xdead')
          throw killed
        },
      },
    }
    await round({ chain: dying })
    const before = await read()
    expect(before).toMatchObject({ state: 'sent', transaction_hashes: ['0xdead'] })
    await round()
    pass(9)
    await round()
    expect(broadcast).toHaveLength(0)
    pass(2)
    await round()
    expect(broadcast).toHaveLength(1)
    expect(await read()).toMatchObject({
      sequence: before?.sequence,
      hash: before?.hash,
      transaction_hashes: ['0xdead', ...broadcast],
    })
  })

  it('finds the transaction of a gateway that was killed after the broadcast', async () => {
    const { round, pass, read, chain, broadcast, parts } = await scene()
    const { signer } = parts.chain
    const dying = {
      ...parts.chain,
      signer: {
        ...signer,
        address: signer.address,
        sendTransaction: async (transaction: Parameters<typeof signer.sendTransaction>[0]) => {
          await signer.sendTransaction(transaction)
          throw killed
        },
      },
    }
    await round({ chain: dying })
    expect(broadcast).toHaveLength(1)
    chain.above = 2n
    pass(30)
    await round()
    expect(await read()).toMatchObject({ state: 'confirmed', transaction_hash: broadcast[0] })
    expect(broadcast).toHaveLength(1)
  })

  it('sends once another gateway may claim a day whose sender was killed before it recorded a transaction', async () => {
    const { round, pass, read, broadcast, parts } = await scene()
    const { signer } = parts.chain
    // The process ends: nothing after the claim runs, nor the release.
    const hung = {
      ...parts.chain,
      signer: { ...signer, address: signer.address, sendTransaction: () => new Promise<Hex>(() => {}) },
    }
    void round({ chain: hung })
    await expect.poll(async () => (await read())?.attempt).toBeTruthy()
    await round()
    expect(broadcast).toHaveLength(0)
    pass(3)
    await round()
    expect(broadcast).toHaveLength(1)
  })

  it('does not broadcast from a gateway that stood still until another took over', async () => {
    const { round, pass, broadcast, read, parts } = await scene()
    const { signer } = parts.chain
    let wake = () => {}
    const isAwake = new Promise<void>((resolve) => {
      wake = resolve
    })
    const slow = {
      ...parts.chain,
      signer: {
        ...signer,
        address: signer.address,
        sendTransaction: async (transaction: Parameters<typeof signer.sendTransaction>[0]) => {
          await isAwake
          return signer.sendTransaction(transaction)
        },
      },
    }
    const late = round({ chain: slow })
    await expect.poll(async () => (await read())?.attempt).toBeTruthy()
    pass(3)
    await round()
    wake()
    await late
    expect(broadcast).toHaveLength(1)
    expect((await read())?.transaction_hashes).toEqual(broadcast)
  })

  it('records a replacement at a higher price, and confirms whichever was mined', async () => {
    const { round, read, chain, broadcast, parts } = await scene()
    const { signer } = parts.chain
    let replace: ((hash: Hex) => Promise<void>) | undefined
    const watching = {
      ...parts.chain,
      signer: {
        ...signer,
        address: signer.address,
        sendTransaction: (transaction: Parameters<typeof signer.sendTransaction>[0]) => {
          replace = transaction.beforeBroadcast
          return signer.sendTransaction(transaction)
        },
      },
    }
    await round({ chain: watching })
    await replace?.('0xbeef')
    expect((await read())?.transaction_hashes).toEqual([...broadcast, '0xbeef'])
    const [first = '0x'] = broadcast
    const original = await chain.transaction(first)
    chain.above = 2n
    await round({
      chain: {
        ...parts.chain,
        transaction: async (hash) => (hash === '0xbeef' && original ? { ...original, hash } : undefined),
      },
    })
    expect(await read()).toMatchObject({ state: 'confirmed', transaction_hash: '0xbeef' })
  })

  it('names the sender of the transaction that was mined, also where another sponsor has tried since', async () => {
    const { round, pass, read, chain, broadcast, parts } = await scene()
    const { signer } = parts.chain
    await round()
    chain.isHeld = true
    pass(11)
    const other = '0x00000000000000000000000000000000000000aa'
    const sendTransaction = async ({
      beforeBroadcast,
    }: Parameters<typeof signer.sendTransaction>[0]): Promise<Hex> => {
      await beforeBroadcast?.('0xdead')
      throw killed
    }
    await round({ chain: { ...parts.chain, signer: { ...signer, address: other, sendTransaction } } })
    expect(await read()).toMatchObject({ sender: other, transaction_hashes: [...broadcast, '0xdead'] })
    chain.isHeld = false
    chain.above = 2n
    const [hash = '0x'] = broadcast
    const mined = await chain.transaction(hash)
    const sender = '0x00000000000000000000000000000000000000bb' as const
    const transaction = async (asked: Hex) => (asked === hash && mined ? { ...mined, sender } : undefined)
    await round({ chain: { ...parts.chain, transaction } })
    expect(await read()).toMatchObject({ state: 'confirmed', transaction_hash: hash, sender })
  })

  it('sends the same head again after its block was replaced', async () => {
    const { round, pass, read, chain, broadcast, replaceBlocks } = await scene()
    await round()
    const before = await read()
    replaceBlocks()
    chain.above = 5n
    await round()
    expect((await read())?.state).toBe('sent')
    pass(11)
    await round()
    expect(broadcast).toHaveLength(2)
    const calls = await Promise.all(broadcast.map((hash) => chain.transaction(hash)))
    expect(calls[0]).toBeUndefined()
    expect(calls[1]?.calldata).toBe(
      encodeAnchor({ sequence: before?.sequence ?? 0n, hash: before?.hash ?? '' }),
    )
    await round()
    expect(await read()).toMatchObject({ state: 'confirmed', transaction_hash: broadcast[1] })
  })

  it('takes no other transaction for its own', async () => {
    const { round, read, chain, broadcast, parts } = await scene()
    await round()
    const [hash = '0x'] = broadcast
    const mined = await chain.transaction(hash)
    chain.above = 2n
    const claims = (change: Partial<CalledTransaction>) =>
      round({ chain: { ...parts.chain, transaction: async () => mined && { ...mined, ...change } } })
    await claims({ calldata: encodeAnchor({ sequence: 3n, hash: '0'.repeat(64) }) })
    await claims({ succeeded: false })
    expect((await read())?.state).toBe('sent')
  })

  it('gives up a day that could not be sent in time, and sends the next', async () => {
    const { round, pass, read, chain, broadcast } = await scene()
    const failing = {
      ...chain,
      signer: {
        ...chain.signer,
        address: chain.signer.address,
        sendTransaction: () => Promise.reject(new Error('no gas')),
      },
    }
    await round({ chain: failing })
    expect((await read())?.state).toBe('prepared')
    pass(36 * 60)
    await round()
    expect((await read())?.state).toBe('missed')
    expect(broadcast).toHaveLength(1)
  })

  it('keeps the head of a day: the database refuses another', async () => {
    const { round, day: own } = await scene()
    await round()
    const set = database().kysely.updateTable('decision_anchor').where('day', '=', own)
    await expect(set.set({ hash: '0'.repeat(64) }).execute()).rejects.toThrow('append-only')
    await expect(set.set({ sequence: 1n }).execute()).rejects.toThrow('append-only')
    await expect(database().kysely.deleteFrom('decision_anchor').execute()).rejects.toThrow('append-only')
  })

  it('is compared with the chain of decisions', async () => {
    const { keySet } = await deriveSigningKey(settings.dataKey)
    const anchors = await readAnchoredHeads(database())
    expect(anchors.length).toBeGreaterThan(5)
    const verify = (heads: typeof anchors) =>
      verifyChain(sealedPages(database()), { keySet, anchors: heads }).then(({ fault }) => fault)
    expect(await verify(anchors)).toBeNull()
    const [first] = anchors
    if (first === undefined) throw new Error('none is anchored')
    expect(await verify([...anchors, { ...first, hash: '0'.repeat(64) }])).toMatchObject({
      sequence: 3n,
      kind: 'anchor contradicts',
    })
    expect(await verify([{ ...first, sequence: 99n }])).toMatchObject({ kind: 'row missing' })
  })
})
