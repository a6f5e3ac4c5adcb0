import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { operationOutcome } from '../../src/books/evidence/operation-outcome.ts'
import { startAnvilChain } from '../../src/chain/node/anvil.ts'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { developmentContracts } from '../../src/chain/node/deploy.ts'
import { connectRpcChain } from '../../src/chain/rpc.ts'
import { createSimulatedChain } from '../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../src/core/base/clock.ts'
import { silentLog } from '../../src/core/base/log.ts'
import type { Chain } from '../../src/providers/chain/port.ts'
import { createEnvironmentKey } from '../../src/providers/keys/environment.ts'
import { buildTransfer, buildWallet, fundedAccount, newAddress, testChain } from './chain.ts'

const parts = { clock: systemClock, log: silentLog }
const binary = binaryOrUndefined()

function binaryOrUndefined(): string | undefined {
  try {
    return findAnvil(process.env.ANVIL_BIN)
  } catch {
    return undefined
  }
}

const servers: Server[] = []
afterAll(() => {
  for (const server of servers) server.close().closeAllConnections()
})

/** The same node as a public client sees it: no development methods, perhaps another chain id. */
async function publicNode(url: string, chainId?: string): Promise<string> {
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const { id, method } = z.object({ id: z.number(), method: z.string() }).parse(JSON.parse(body))
    const answer = (members: object) => response.end(JSON.stringify({ jsonrpc: '2.0', id, ...members }))
    if (/^(anvil|evm|hardhat)_/.test(method))
      return answer({ error: { code: -32601, message: 'Method not found' } })
    if (method === 'eth_chainId' && chainId !== undefined) return answer({ result: chainId })
    const headers = { 'content-type': 'application/json' }
    return response.end(await (await fetch(url, { method: 'POST', headers, body })).text())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  servers.push(server)
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return `http://127.0.0.1:${address.port}`
}

testChain('simulated', () => createSimulatedChain(parts))

describe.skipIf(binary === undefined)('with an anvil binary (set ANVIL_BIN where this is skipped)', () => {
  testChain('anvil', () => startAnvilChain({ name: 'base-sepolia', ...parts, binary }))

  describe('chain: a remote node', () => {
    let node: AnvilProcess
    beforeAll(async () => {
      node = await spawnAnvil(binary ?? '', 0, 10_000)
    })
    afterAll(() => node?.stop())
    const connect = () => connectRpcChain({ name: 'base-sepolia', ...parts, url: node.url })

    testChain('rpc', connect)

    it('is set up by several gateways at once, and shared by them', async () => {
      const fresh = await spawnAnvil(binary ?? '', 0, 10_000)
      onTestFinished(() => fresh.stop())
      const chains = await Promise.all(
        [1, 2, 3].map(() => connectRpcChain({ name: 'base-sepolia', ...parts, url: fresh.url })),
      )
      onTestFinished(async () => void (await Promise.all(chains.map((chain) => chain.close()))))
      const to = newAddress()
      await Promise.all(
        chains.map(async (chain) => {
          const transfer = buildTransfer(await fundedAccount(chain, 5n), to, 5n)
          await chain.submit(transfer)
          expect(await operationOutcome(chain, transfer, 5_000)).toMatchObject({ status: 'confirmed' })
        }),
      )
      expect(await chains[0]?.readBalance('USDC', to)).toBe(15n)
    })

    it('executes an id once although another gateway submitted it, and reports its outcome', async () => {
      const [one, other] = [await connect(), await connect()]
      onTestFinished(async () => void (await Promise.all([one.close(), other.close()])))
      const to = newAddress()
      const transfer = buildTransfer(await fundedAccount(one, 10n), to, 10n)
      const first = await one.submit(transfer)
      const outcome = await operationOutcome(one, transfer, 5_000)
      expect(await other.submit(transfer)).toEqual(first)
      expect(await operationOutcome(other, transfer, 5_000)).toEqual(outcome)
      expect(await one.readBalance('USDC', to)).toBe(10n)
    })

    it('executes an id once although two gateways submit it concurrently', async () => {
      const [one, other] = [await connect(), await connect()]
      onTestFinished(async () => void (await Promise.all([one.close(), other.close()])))
      const to = newAddress()
      const accountId = await fundedAccount(one, 100n)
      const transfers = Array.from({ length: 10 }, () => buildTransfer(accountId, to, 1n))
      for (const transfer of transfers) {
        await Promise.all([one.submit(transfer), other.submit(transfer)])
        const outcomes = await Promise.all(
          [one, other].map((chain) => operationOutcome(chain, transfer, 5_000)),
        )
        expect(outcomes.map(({ status }) => status)).toEqual(['confirmed', 'confirmed'])
      }
      expect(await one.readBalance('USDC', to)).toBe(10n)
    })

    it('detects that the node restarted empty, and restores it before anything else', async () => {
      const first = await spawnAnvil(binary ?? '', 0, 10_000)
      const chain = await connectRpcChain({ name: 'base-sepolia', ...parts, url: first.url })
      onTestFinished(() => chain.close())
      const holder = newAddress()
      chain.onReset(() => chain.mint([{ token: 'USDC', to: holder, units: 42n }]))
      await first.stop()
      const second = await spawnAnvil(binary ?? '', first.port, 10_000)
      onTestFinished(() => second.stop())
      await expect
        .poll(() => chain.readBalance('USDC', holder).catch(() => 0n), { timeout: 10_000 })
        .toBe(42n)
    })
  })

  describe('chain: a public node', () => {
    const sponsorKey = generatePrivateKey()
    let node: AnvilProcess
    let workshop: Chain
    let chain: Chain
    let url: string
    beforeAll(async () => {
      node = await spawnAnvil(binary ?? '', 0, 10_000)
      workshop = await connectRpcChain({ name: 'base-sepolia', ...parts, url: node.url })
      await workshop.fundGas(privateKeyToAccount(sponsorKey).address, 10n ** 18n)
      url = await publicNode(node.url)
      chain = await connectRpcChain({
        name: 'base-sepolia',
        ...parts,
        url,
        sponsor: createEnvironmentKey(sponsorKey),
        contracts: developmentContracts(),
      })
    })
    afterAll(async () => {
      await Promise.all([chain?.close(), workshop?.close()])
      await node?.stop()
    })

    it('has no RPC URL for clients, and no faucet', async () => {
      expect(chain.rpcUrl).toBeNull()
      await expect(chain.mint([{ token: 'USDC', to: newAddress(), units: 1n }])).rejects.toThrow(
        'cannot mint',
      )
      await expect(chain.fundGas(newAddress(), 1n)).rejects.toThrow('cannot mint')
    })

    it("moves money at the sponsor's expense, once", async () => {
      const to = newAddress()
      const transfers = [1n, 2n, 3n].map((units) => buildTransfer('acct_public', to, units))
      const wallet = await chain.walletAddress(buildWallet('acct_public'))
      await workshop.mint([{ token: 'USDC', to: wallet, units: 6n }])
      for (const transfer of transfers) {
        const submission = await chain.submit(transfer)
        const outcome = await operationOutcome(chain, transfer, 5_000)
        expect(outcome).toMatchObject({ status: 'confirmed' })
        expect(await chain.submit(transfer)).toEqual(submission)
      }
      expect(await chain.readBalance('USDC', to)).toBe(6n)
      expect(await chain.submit(buildTransfer('acct_public', to, 1n))).toMatchObject({
        status: 'refused',
      })
    })

    it('finds what an earlier process has executed', async () => {
      const to = newAddress()
      const transfer = buildTransfer('acct_earlier', to, 5n)
      await workshop.mint([
        { token: 'USDC', to: await chain.walletAddress(buildWallet('acct_earlier')), units: 5n },
      ])
      await chain.submit(transfer)
      const outcome = await operationOutcome(chain, transfer, 5_000)
      const later = await connectRpcChain({
        name: 'base-sepolia',
        ...parts,
        url,
        sponsor: createEnvironmentKey(sponsorKey),
        contracts: developmentContracts(),
      })
      onTestFinished(() => later.close())
      expect(await operationOutcome(later, transfer, 0)).toEqual(outcome)
      expect(await later.submit(transfer)).toMatchObject({ status: 'submitted' })
      expect(await later.readBalance('USDC', to)).toBe(5n)
    })

    it('is refused with a list of everything that is missing', async () => {
      const connecting = connectRpcChain({
        name: 'base-sepolia',
        ...parts,
        url: await publicNode(node.url, '0x1'),
      })
      await expect(connecting).rejects.toThrow(
        /has chain id 1; base-sepolia has chain id 84532; CHAIN_SPONSOR_KEY/,
      )
      const incomplete = connectRpcChain({ name: 'base-sepolia', ...parts, url: await publicNode(node.url) })
      await expect(incomplete).rejects.toThrow(
        /CHAIN_SPONSOR_KEY is missing: it pays for gas; module at .*: there is no contract; moduleSetup at .*: there is no contract/,
      )
    })
  })

  describe('chain: anvil, killed', () => {
    it('is restarted, restored before other calls, and works again', async () => {
      const pids: number[] = []
      const info = (facts: object) => {
        if ('pid' in facts && typeof facts.pid === 'number') pids.push(facts.pid)
      }
      const chain = await startAnvilChain({ name: 'base-sepolia', binary, log: { ...silentLog, info } })
      onTestFinished(() => chain.close())
      const url = chain.rpcUrl
      const accountId = await fundedAccount(chain, 1_000n)
      const wallet = await chain.walletAddress(buildWallet(accountId))
      const to = newAddress()
      await chain.submit(buildTransfer(accountId, to, 1n))
      let resets = 0
      chain.onReset(async () => {
        resets += 1
        await sleep(50)
        await chain.mint([{ token: 'USDC', to: wallet, units: 500n }])
      })
      process.kill(pids[0] ?? 0, 'SIGKILL')
      await sleep(20)

      // A call during the outage waits, and sees the restored state.
      expect(await chain.readBalance('USDC', wallet)).toBe(500n)
      expect(resets).toBe(1)
      expect(chain.rpcUrl).toBe(url)
      expect(await chain.walletAddress(buildWallet(accountId))).toBe(wallet)
      expect(await chain.modules(buildWallet(accountId))).toMatchObject([{ status: 'pending_deployment' }])
      const transfer = buildTransfer(accountId, to, 2n)
      expect(await chain.submit(transfer)).toMatchObject({ status: 'submitted' })
      expect(await operationOutcome(chain, transfer, 5_000)).toMatchObject({ status: 'confirmed' })
      expect(await chain.readBalance('USDC', to)).toBe(2n)

      process.kill(pids[1] ?? 0, 'SIGKILL')
      await expect.poll(() => resets, { timeout: 5_000 }).toBe(2)
      expect(await chain.readBalance('USDC', wallet)).toBe(500n)
    })

    it('refuses calls as unavailable if it does not return in time', async () => {
      const pids: number[] = []
      const info = (facts: object) => {
        if ('pid' in facts && typeof facts.pid === 'number') pids.push(facts.pid)
      }
      const chain = await startAnvilChain({
        name: 'base-sepolia',
        binary,
        waitMs: 100,
        log: { ...silentLog, info },
      })
      onTestFinished(() => chain.close())
      chain.onReset(() => sleep(1_000))
      process.kill(pids[0] ?? 0, 'SIGKILL')
      await sleep(50)
      const unavailable = { code: 'provider_unavailable', members: { retryAfter: 2 } }
      await expect(chain.blockNumber()).rejects.toMatchObject(unavailable)
      await expect(chain.submit(buildTransfer('acct_1', newAddress(), 1n))).rejects.toMatchObject(unavailable)
      await expect.poll(() => chain.blockNumber().catch(() => -1n), { timeout: 5_000 }).toBeGreaterThan(0n)
    })
  })
})
