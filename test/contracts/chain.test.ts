import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { silentLog } from '../../src/log.ts'
import { startAnvilChain } from '../../src/providers/chain/anvil.ts'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/providers/chain/anvil-process.ts'
import { connectRpcChain } from '../../src/providers/chain/rpc.ts'
import { createSimulatedChain } from '../../src/providers/chain/simulated.ts'
import { fundedAccount, newAddress, testChain, transferOf } from './chain.ts'

const parts = { clock: systemClock, log: silentLog }
const binary = binaryOrUndefined()

function binaryOrUndefined(): string | undefined {
  try {
    return findAnvil(process.env.ANVIL_BIN)
  } catch {
    return undefined
  }
}

testChain('simulated', () => createSimulatedChain(parts))

describe.skipIf(binary === undefined)('with an anvil binary (set ANVIL_BIN where this is skipped)', () => {
  testChain('anvil', () => startAnvilChain({ ...parts, binary }))

  describe('chain: a node that somebody else runs', () => {
    let node: AnvilProcess
    beforeAll(async () => {
      node = await spawnAnvil(binary ?? '', 0, 10_000)
    })
    afterAll(() => node?.stop())
    const connect = () => connectRpcChain({ ...parts, url: node.url })

    testChain('rpc', connect)

    it('is set up by several gateways at once, and shared by them', async () => {
      const fresh = await spawnAnvil(binary ?? '', 0, 10_000)
      onTestFinished(() => fresh.stop())
      const chains = await Promise.all([1, 2, 3].map(() => connectRpcChain({ ...parts, url: fresh.url })))
      onTestFinished(async () => void (await Promise.all(chains.map((chain) => chain.close()))))
      const to = newAddress()
      await Promise.all(
        chains.map(async (chain) => {
          const transfer = transferOf(await fundedAccount(chain, 5n), to, 5n)
          await chain.submitTransfer(transfer)
          expect(await chain.outcomeOf(transfer, 5_000)).toMatchObject({ status: 'confirmed' })
        }),
      )
      expect(await chains[0]?.balanceOf('USDC', to)).toBe(15n)
    })

    it('executes an id once although another gateway submitted it, and tells its outcome', async () => {
      const [one, other] = [await connect(), await connect()]
      onTestFinished(async () => void (await Promise.all([one.close(), other.close()])))
      const to = newAddress()
      const transfer = transferOf(await fundedAccount(one, 10n), to, 10n)
      const first = await one.submitTransfer(transfer)
      const outcome = await one.outcomeOf(transfer, 5_000)
      expect(await other.submitTransfer(transfer)).toEqual(first)
      expect(await other.outcomeOf(transfer, 5_000)).toEqual(outcome)
      expect(await one.balanceOf('USDC', to)).toBe(10n)
    })

    it('executes an id once although two gateways submit it at the same moment', async () => {
      const [one, other] = [await connect(), await connect()]
      onTestFinished(async () => void (await Promise.all([one.close(), other.close()])))
      const to = newAddress()
      const accountId = await fundedAccount(one, 100n)
      const transfers = Array.from({ length: 10 }, () => transferOf(accountId, to, 1n))
      for (const transfer of transfers) {
        await Promise.all([one.submitTransfer(transfer), other.submitTransfer(transfer)])
        const outcomes = await Promise.all([one, other].map((chain) => chain.outcomeOf(transfer, 5_000)))
        expect(outcomes.map(({ status }) => status)).toEqual(['confirmed', 'confirmed'])
      }
      expect(await one.balanceOf('USDC', to)).toBe(10n)
    })

    it('says all that is missing where the node is not a development node', async () => {
      const wrong = await spawnAnvil(binary ?? '', 0, 10_000)
      await wrong.stop()
      await expect(connectRpcChain({ ...parts, url: wrong.url })).rejects.toThrow()
    })

    it('notices that the node was restarted empty, and is brought up before anything else', async () => {
      const first = await spawnAnvil(binary ?? '', 0, 10_000)
      const chain = await connectRpcChain({ ...parts, url: first.url })
      onTestFinished(() => chain.close())
      const holder = newAddress()
      chain.onReset(() => chain.mint([{ token: 'USDC', to: holder, units: 42n }]))
      await first.stop()
      const second = await spawnAnvil(binary ?? '', first.port, 10_000)
      onTestFinished(() => second.stop())
      await expect.poll(() => chain.balanceOf('USDC', holder).catch(() => 0n), { timeout: 10_000 }).toBe(42n)
    })
  })

  describe('chain: anvil, killed', () => {
    it('is restarted, brought up before anybody else may use it, and works again', async () => {
      const pids: number[] = []
      const info = (facts: object) => {
        if ('pid' in facts && typeof facts.pid === 'number') pids.push(facts.pid)
      }
      const chain = await startAnvilChain({ binary, log: { ...silentLog, info } })
      onTestFinished(() => chain.close())
      const url = chain.rpcUrl
      const accountId = await fundedAccount(chain, 1_000n)
      const wallet = await chain.walletAddress(accountId)
      const to = newAddress()
      await chain.submitTransfer(transferOf(accountId, to, 1n))
      let resets = 0
      chain.onReset(async () => {
        resets += 1
        await sleep(50)
        await chain.mint([{ token: 'USDC', to: wallet, units: 500n }])
      })
      process.kill(pids[0] ?? 0, 'SIGKILL')
      await sleep(20)

      // Asked while it is away: it waits, and sees what was brought up.
      expect(await chain.balanceOf('USDC', wallet)).toBe(500n)
      expect(resets).toBe(1)
      expect(chain.rpcUrl).toBe(url)
      expect(await chain.walletAddress(accountId)).toBe(wallet)
      expect(await chain.modules(accountId)).toMatchObject([{ status: 'pending_deployment' }])
      const transfer = transferOf(accountId, to, 2n)
      expect(await chain.submitTransfer(transfer)).toMatchObject({ status: 'submitted' })
      expect(await chain.outcomeOf(transfer, 5_000)).toMatchObject({ status: 'confirmed' })
      expect(await chain.balanceOf('USDC', to)).toBe(2n)

      process.kill(pids[1] ?? 0, 'SIGKILL')
      await expect.poll(() => resets, { timeout: 5_000 }).toBe(2)
      expect(await chain.balanceOf('USDC', wallet)).toBe(500n)
    })

    it('refuses calls as unavailable where it does not come back in time', async () => {
      const pids: number[] = []
      const info = (facts: object) => {
        if ('pid' in facts && typeof facts.pid === 'number') pids.push(facts.pid)
      }
      const chain = await startAnvilChain({ binary, waitMs: 100, log: { ...silentLog, info } })
      onTestFinished(() => chain.close())
      chain.onReset(() => sleep(1_000))
      process.kill(pids[0] ?? 0, 'SIGKILL')
      await sleep(50)
      const unavailable = { code: 'provider_unavailable', members: { retryAfter: 2 } }
      await expect(chain.blockNumber()).rejects.toMatchObject(unavailable)
      await expect(chain.submitTransfer(transferOf('acct_1', newAddress(), 1n))).rejects.toMatchObject(
        unavailable,
      )
      await expect.poll(() => chain.blockNumber().catch(() => -1n), { timeout: 5_000 }).toBeGreaterThan(0n)
    })
  })
})
