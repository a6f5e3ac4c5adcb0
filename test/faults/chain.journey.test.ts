/**
 * A chain that is unreachable, hangs, or answers garbage: a transfer is refused before it is sent, or pending and
 * resolved later; never reported as failed if it may have been sent, and never sent twice.
 */

import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { createPublicClient, erc20Abi, http } from 'viem'
import { baseSepolia } from 'viem/chains'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { expectUnavailable, MAX_ANSWER_MS, sendJson } from './ask.ts'
import { type Misbehaviour, misbehaviours } from './misbehaving-server.ts'
import { type Client, createClient } from './transfers.ts'

const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const hex = z.templateLiteral(['0x', z.string()])

const binary = (() => {
  try {
    return findAnvil(process.env.ANVIL_BIN)
  } catch {
    return undefined
  }
})()

/** Replaces the node's answer, before or after the node has executed the request. */
type Fault = { readonly how: Misbehaviour; readonly when: 'before' | 'after' } | null

describe.skipIf(binary === undefined)('a gateway whose chain', () => {
  let node: AnvilProcess
  let front: Server
  let fault: Fault = null
  /** How often the node was asked for its latest block. */
  let asked = 0
  let gateway: Gateway
  let client: Client
  let directory: string
  let sent = 0

  beforeAll(async () => {
    node = await spawnAnvil(binary ?? '', 0, 10_000)
    front = createServer(async (request, response) => {
      response.on('error', () => {})
      const body = await text(request).catch(() => '')
      asked += body.split('"eth_blockNumber"').length - 1
      const ask = () =>
        fetch(node.url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
      if (fault !== null) {
        const { how, when } = fault
        if (when === 'after') await (await ask()).arrayBuffer()
        return void Promise.resolve(misbehaviours[how](response)).catch(() => response.destroy())
      }
      const answer = await (await ask()).text()
      response.writeHead(200, { 'content-type': 'application/json' }).end(answer)
    }).listen(0, '127.0.0.1')
    await once(front, 'listening')
    const { port } = z.object({ port: z.number() }).parse(front.address())
    directory = mkdtempSync(join(tmpdir(), 'bursar-chain-'))
    gateway = await startGateway({
      DATA_DIR: directory,
      CHAIN_RPC_URL: `http://127.0.0.1:${port}`,
      RATE_MUTATIONS: '100000/60',
      LOG_LEVEL: 'silent',
    })
    client = await createClient(gateway.origin)
  }, 60_000)
  afterAll(async () => {
    fault = null
    await gateway?.stop()
    front?.closeAllConnections()
    front?.close()
    await node?.stop()
    if (directory !== undefined) rmSync(directory, { recursive: true, force: true })
  })

  const onChain = async () => {
    const { safeAddress } = z.object({ safeAddress: hex }).parse((await client.get('/api/wallets')).body)
    const reader = createPublicClient({ chain: baseSepolia, transport: http(node.url) })
    return reader.readContract({
      address: USDC,
      abi: erc20Abi,
      functionName: 'balanceOf',
      args: [safeAddress],
    })
  }
  /** Expects that nothing is held, and that ledger and chain agree. */
  const expectConsistent = async () => {
    await expect
      .poll(() => client.usdc(), { timeout: 30_000 })
      .toEqual({ amount: String(1000 - sent), held: '0' })
    await expect.poll(onChain, { timeout: 10_000 }).toBe(BigInt(1000 - sent) * 1_000_000n)
    await expect
      .poll(async () => (await sendJson(`${gateway.origin}/readyz`)).status, { timeout: 10_000 })
      .toBe(200)
  }
  afterEach(async () => {
    fault = null
    await expectConsistent()
  }, 60_000)

  it('is asked once in half a second, however often readiness is', async () => {
    const before = asked
    const startedAt = performance.now()
    for (let round = 0; round < 200; round += 1)
      expect((await sendJson(`${gateway.origin}/readyz`)).status).toBe(200)
    // Beside the jobs, which ask a few times a second.
    const seconds = (performance.now() - startedAt) / 1_000
    expect(asked - before).toBeLessThan(10 + 5 * seconds)
  })

  it.each<NonNullable<Fault>>([
    { how: 'closes the connection at once', when: 'before' },
    { how: 'never answers', when: 'before' },
    { how: 'answers HTML with 200', when: 'before' },
    { how: 'closes the connection at once', when: 'after' },
    { how: 'never answers', when: 'after' },
    { how: 'answers JSON of another shape', when: 'after' },
  ])(
    '$how $when it has executed a request, leaves no transfer unresolved',
    async ({ how, when }) => {
      const name = `${how}-${when}`.replaceAll(' ', '-')
      fault = { how, when }
      const all = await Promise.all([client.transfer('1', `${name}-1`), client.transfer('2', `${name}-2`)])
      for (const transferAnswer of all) {
        expect(transferAnswer.ms).toBeLessThan(MAX_ANSWER_MS)
        if (transferAnswer.status !== 200)
          expectUnavailable(transferAnswer, 'settlement_pending', 'provider_unavailable')
      }
      const wallet = await client.get('/api/wallets')
      await expect.poll(async () => (await sendJson(`${gateway.origin}/readyz`)).status).toBe(503)
      expect([200, 503]).toContain(wallet.status)
      fault = null
      for (const [index, amount] of [1, 2].entries()) {
        const known = await client.transferUntilFinal(String(amount), `${name}-${index + 1}`)
        if (known.body.status === 'confirmed') sent += amount
        else expect(known.body).toMatchObject({ status: 503, code: 'provider_unavailable' })
        const again = await client.transfer(String(amount), `${name}-${index + 1}`)
        expect([again.status, again.body.code]).toEqual([known.status, known.body.code])
      }
    },
    90_000,
  )
})
