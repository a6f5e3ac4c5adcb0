/** Asking a node for its kind, as every start does, must not harm it: gateways start while others send transactions. */
import { createWalletClient, http, parseEther } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../../src/chain/node/anvil-process.ts'
import { createNodeClient, remoteNodeOptions } from '../../../src/chain/rpc/client.ts'
import { isDevelopmentNode } from '../../../src/chain/rpc/development-node.ts'
import { hasAnvil } from '../../rails/selling/x402/world.ts'

const QUESTIONS = 10_000
const CALLERS = 32

describe.skipIf(!hasAnvil())('a development node', () => {
  let node: AnvilProcess
  beforeAll(async () => {
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
  }, 30_000)
  afterAll(async () => {
    await node?.stop()
  })

  it('goes on mining while it is asked for its kind', async () => {
    const client = createNodeClient(remoteNodeOptions('base-sepolia', node.url))
    const wallet = createWalletClient({ chain: client.chain, transport: http(node.url, { retryCount: 0 }) })
    const senders = await wallet.getAddresses()
    let left = QUESTIONS
    const ask = async () => {
      for (; left > 0; left -= 1) expect(await isDevelopmentNode(client)).toBe(true)
    }
    let sent = 0
    const send = async (account: `0x${string}`) => {
      for (; left > 0; sent += 1)
        await wallet.sendTransaction({ account, to: account, value: parseEther('0.001') })
    }
    await Promise.all([...senders.slice(0, 8).map(send), ...Array.from({ length: CALLERS }, ask)])
    expect(sent).toBeGreaterThan(0)
    expect(await client.getBlockNumber()).toBeGreaterThan(0n)
  }, 240_000)
})
