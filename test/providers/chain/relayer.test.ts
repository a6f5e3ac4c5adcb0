import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, it, onTestFinished } from 'vitest'
import { findAnvil, spawnAnvil } from '../../../src/providers/chain/anvil-process.ts'
import { createNodeClient, nearby } from '../../../src/providers/chain/client.ts'
import { developmentFees, plenty, setNativeBalance } from '../../../src/providers/chain/development-node.ts'
import { awaitReceipt } from '../../../src/providers/chain/receipts.ts'
import { createRelayer } from '../../../src/providers/chain/relayer.ts'

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
  const client = createNodeClient(nearby(node.url))
  const account = privateKeyToAccount(generatePrivateKey())
  await setNativeBalance(client, account.address, plenty)
  const relayer = () => createRelayer(client, account, async () => developmentFees)
  const call = { to: account.address, data: '0x', gas: 30_000n } as const
  const mined = async (hashes: readonly `0x${string}`[]) => {
    const receipts = await Promise.all(hashes.map((hash) => awaitReceipt(client, hash, 5_000)))
    return receipts.every(({ status }) => status === 'success')
  }
  return { relayer: relayer(), another: relayer(), call, mined }
}

describe.skipIf(binary === undefined)('relayer', () => {
  it('sends two hundred at once', async () => {
    const { relayer, call, mined } = await fixture()
    const hashes = await Promise.all(Array.from({ length: 200 }, () => relayer.send(call)))
    expect(new Set(hashes).size).toBe(200)
    expect(await mined(hashes)).toBe(true)
  })

  it('leaves no gap behind that would block the queue where the node refuses some', async () => {
    const { relayer, call, mined } = await fixture()
    const tooLittleGas = { ...call, gas: 100n }
    const sent = await Promise.allSettled(
      Array.from({ length: 60 }, (_, index) => relayer.send(index % 3 === 1 ? tooLittleGas : call)),
    )
    expect(sent.filter(({ status }) => status === 'rejected')).toHaveLength(20)
    const hashes = sent.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    expect(await mined(hashes)).toBe(true)
    expect(await mined([await relayer.send(call)])).toBe(true)
  })

  it('begins again from what the node says where somebody else sends with its key', async () => {
    const { relayer, another, call, mined } = await fixture()
    expect(await mined([await relayer.send(call)])).toBe(true)
    expect(await mined([await another.send(call)])).toBe(true)
    expect(await mined([await relayer.send({ ...call, gas: 31_000n })])).toBe(true)
    expect(await mined([await another.send({ ...call, gas: 32_000n })])).toBe(true)
  })
})
