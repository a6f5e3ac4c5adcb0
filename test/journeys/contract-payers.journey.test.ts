/**
 * Contract payers (EIP-1271) on a real chain. Their signature check costs the sponsor gas, so it is bounded or refused.
 */
import { randomBytes } from 'node:crypto'
import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment } from '@x402/fetch'
import { createPublicClient, createTestClient, http } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const hex = z.templateLiteral(['0x', z.string()])
const credentials = z.object({ chain: z.object({ rpcUrl: z.string() }) })

/** Gas of one iteration of the loop below. */
const ROUND_GAS = 26
const MAX_GAS = 400_000n

/** Bytecode of a wallet that accepts every signature and burns about this much gas. */
function burningWallet(gas: number): `0x${string}` {
  const rounds = Math.max(1, Math.ceil(gas / ROUND_GAS))
    .toString(16)
    .padStart(6, '0')
  const loop = `62${rounds}5b6001900380600457`
  const answer = `7f1626ba7e${'00'.repeat(28)}60005260206000f3`
  return `0x${loop}${answer}`
}

/** Bytecode of a wallet that accepts every signature and burns almost all the gas it is given. */
const greedyWallet = `0x5b5a611388106000577f1626ba7e${'00'.repeat(28)}60005260206000f3` as const

describe('a contract payer', () => {
  let gateway: Gateway
  let guest: Person
  let node: ReturnType<typeof createPublicClient>
  let rpcUrl: string
  const newPayer = async (code: `0x${string}`) => {
    const address = hex.parse(`0x${randomBytes(20).toString('hex')}`)
    await createTestClient({ mode: 'anvil', transport: http(rpcUrl) }).setCode({ address, bytecode: code })
    const funded = await requestJson(gateway.origin, 'POST', '/sandbox/faucet', {
      body: { address, token: 'USDC', amount: '5' },
    })
    expect(funded.status).toBe(200)
    return address
  }
  const signature = `0x${'11'.repeat(70)}` as const
  const relay = async (code: `0x${string}`) =>
    guest.send('POST', '/api/transfers/gasless', {
      token: 'USDC',
      authorization: {
        from: await newPayer(code),
        to: `0x${'c1'.repeat(20)}`,
        value: '10000',
        validAfter: '0',
        validBefore: '4000000000',
        nonce: `0x${randomBytes(32).toString('hex')}`,
        signature,
      },
    })
  const buy = async (code: `0x${string}`) => {
    const address = await newPayer(code)
    const account = { address, signTypedData: async () => signature }
    const client = new x402Client().register('eip155:*', new ExactEvmScheme(account))
    return wrapFetchWithPayment(fetch, client)(`${gateway.origin}/api/x402/fx?from=USD&to=EUR&amount=100`)
  }
  /** Returns the highest cost of a transaction since a block. */
  const costSince = async (first: bigint) => {
    const last = await node.getBlockNumber()
    let highest = 0n
    for (let number = first + 1n; number <= last; number += 1n) {
      const block = await node.getBlock({ blockNumber: number })
      if (block.gasUsed > highest) highest = block.gasUsed
    }
    return highest
  }
  beforeAll(async () => {
    gateway = await startGateway({ CHAIN: 'anvil', RATE_GASLESS: '1000/60', LOG_LEVEL: 'silent' })
    guest = await newGuest(gateway.origin)
    rpcUrl = credentials.parse((await requestJson(gateway.origin, 'GET', '/sandbox/credentials')).body).chain
      .rpcUrl
    node = createPublicClient({ transport: http(rpcUrl), cacheTime: 0 })
  })
  afterAll(() => gateway?.stop())

  it.each([1, 150_000])('a payer that uses %d gas can pay a relay and a purchase', async (gas) => {
    const from = await node.getBlockNumber()
    expect((await relay(burningWallet(gas))).status).toBe(200)
    expect((await buy(burningWallet(gas))).status).toBe(200)
    expect(await costSince(from)).toBeLessThanOrEqual(MAX_GAS)
  })

  it.each([420_000, 10_000_000])(
    'a payer that uses %d gas is refused before any transaction',
    async (gas) => {
      const from = await node.getBlockNumber()
      const relayed = await relay(burningWallet(gas))
      expect(relayed).toMatchObject({ status: 422, body: { code: 'authorization_rejected' } })
      expect((await buy(burningWallet(gas))).status).toBe(402)
      // The faucet's two transactions only.
      expect((await node.getBlockNumber()) - from).toBe(2n)
    },
  )

  it('a payer that burns all available gas costs no more than the ceiling', async () => {
    const from = await node.getBlockNumber()
    await relay(greedyWallet)
    await buy(greedyWallet)
    expect(await costSince(from)).toBeLessThanOrEqual(MAX_GAS)
  })
})
