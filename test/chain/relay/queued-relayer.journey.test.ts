import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, it, onTestFinished } from 'vitest'
import { findAnvil, spawnAnvil } from '../../../src/chain/node/anvil-process.ts'
import { createQueuedRelayer } from '../../../src/chain/relay/queued-relayer.ts'
import { awaitReceipt } from '../../../src/chain/relay/receipts.ts'
import type { Fees, SubmittedTransaction } from '../../../src/chain/relay/relayer.ts'
import { createNodeClient, localNodeOptions } from '../../../src/chain/rpc/client.ts'
import { developmentFees, makeSponsor } from '../../../src/chain/rpc/development-node.ts'
import type { Hex } from '../../../src/providers/chain/port.ts'

const binary = (() => {
  try {
    return findAnvil(process.env.ANVIL_BIN)
  } catch {
    return undefined
  }
})()

async function fixture() {
  const node = await spawnAnvil(binary ?? '', 0, 10_000)
  onTestFinished(() => node.stop())
  const client = createNodeClient(localNodeOptions('base-sepolia', node.url))
  const account = privateKeyToAccount(generatePrivateKey())
  await makeSponsor(client, [], account.address)
  // Mined once all are sent: anvil, unlike a public node, can lose transactions that arrive while their predecessor is
  // mined.
  await client.transport.request({ method: 'evm_setAutomine', params: [false] })
  const mineAll = () => client.transport.request({ method: 'evm_mine', params: [] })
  const relayer = () => createQueuedRelayer(client, account, async () => developmentFees)
  const call = { to: account.address, data: '0x', gas: 30_000n } as const
  const awaitMined = async (sent: readonly SubmittedTransaction[]) => {
    const receipts = await Promise.all(sent.map(({ hash }) => awaitReceipt(client, hash, 5_000)))
    return receipts.every(({ status }) => status === 'success')
  }
  const setBaseFee = (wei: bigint) =>
    client.transport.request({ method: 'anvil_setNextBlockBaseFeePerGas', params: [`0x${wei.toString(16)}`] })
  const impatient = (fees: () => Promise<Fees>) => createQueuedRelayer(client, account, fees, 100)
  const hasTransaction = (hash: Hex) =>
    client.getTransaction({ hash }).then(
      () => true,
      () => false,
    )
  const countMined = () => client.getTransactionCount({ address: account.address })
  return {
    relayer: relayer(),
    another: relayer(),
    impatient,
    call,
    mineAll,
    awaitMined,
    setBaseFee,
    countMined,
    hasTransaction,
  }
}

describe.skipIf(binary === undefined)('queued relayer', () => {
  it('sends two hundred concurrently', async () => {
    const { relayer, call, mineAll, awaitMined } = await fixture()
    const sent = await Promise.all(Array.from({ length: 200 }, () => relayer.send(call)))
    expect(new Set(sent.map(({ hash }) => hash)).size).toBe(200)
    await mineAll()
    expect(await awaitMined(sent)).toBe(true)
  })

  it('leaves no nonce gap when the node rejects some', async () => {
    const { relayer, call, mineAll, awaitMined } = await fixture()
    const tooLittleGas = { ...call, gas: 100n }
    const results = await Promise.allSettled(
      Array.from({ length: 60 }, (_, index) => relayer.send(index % 3 === 1 ? tooLittleGas : call)),
    )
    expect(results.filter(({ status }) => status === 'rejected')).toHaveLength(20)
    const sent = results.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    sent.push(await relayer.send(call))
    await mineAll()
    expect(await awaitMined(sent)).toBe(true)
  })

  it('raises the fee of unmined transactions, with the same nonce, until they are mined', async () => {
    const { impatient, call, mineAll, setBaseFee, countMined } = await fixture()
    const gwei = 10n ** 9n
    const relayer = impatient(async () => ({ maxFeePerGas: 2n * gwei, maxPriorityFeePerGas: 1n }))
    await Promise.all([relayer.send(call), relayer.send(call)])
    await setBaseFee(5n * gwei)
    await mineAll()
    expect(await countMined()).toBe(0)
    await expect
      .poll(
        async () => {
          await setBaseFee(5n * gwei)
          await mineAll()
          return countMined()
        },
        { timeout: 10_000, interval: 100 },
      )
      .toBe(2)
  })

  it('announces each transaction before it is broadcast, and those that replace it', async () => {
    const { impatient, call, mineAll, setBaseFee, countMined, hasTransaction } = await fixture()
    const gwei = 10n ** 9n
    const relayer = impatient(async () => ({ maxFeePerGas: 2n * gwei, maxPriorityFeePerGas: 1n }))
    const announced: Hex[] = []
    const known: boolean[] = []
    const beforeBroadcast = async (hash: Hex) => {
      known.push(await hasTransaction(hash))
      announced.push(hash)
    }
    const { hash } = await relayer.send({ ...call, beforeBroadcast })
    expect(announced).toEqual([hash])
    await setBaseFee(5n * gwei)
    await mineAll()
    await expect
      .poll(
        async () => {
          await setBaseFee(5n * gwei)
          await mineAll()
          return countMined()
        },
        { timeout: 10_000, interval: 100 },
      )
      .toBe(1)
    expect(announced.length).toBeGreaterThan(1)
    expect(new Set(announced).size).toBe(announced.length)
    expect(known.some((isKnown) => isKnown)).toBe(false)
    // The last one may replace another that was mined meanwhile.
    expect(await Promise.all(announced.map(hasTransaction))).toContain(true)
  })

  it('broadcasts nothing that its announcement refuses, and leaves no nonce gap', async () => {
    const { relayer, call, mineAll, awaitMined, countMined } = await fixture()
    const refused = () => Promise.reject(new Error('not recorded'))
    const results = await Promise.allSettled([
      relayer.send(call),
      relayer.send({ ...call, beforeBroadcast: refused }),
      relayer.send(call),
    ])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    const sent = results.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    await expect
      .poll(async () => {
        await mineAll()
        return countMined()
      })
      .toBe(3)
    expect(await awaitMined(sent)).toBe(true)
  })

  it('resynchronizes its nonce from the node when another sender uses its key', async () => {
    const { relayer, another, call, mineAll, awaitMined } = await fixture()
    for (const [index, one] of [relayer, another, relayer, another].entries()) {
      const sent = await one.send({ ...call, gas: 30_000n + BigInt(index) })
      await mineAll()
      expect(await awaitMined([sent])).toBe(true)
    }
  })
})
