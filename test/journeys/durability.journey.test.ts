/** Restarts, kills, and two processes on one directory, on the built gateway. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createPublicClient, erc20Abi, http } from 'viem'
import { baseSepolia } from 'viem/chains'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from './gateway.ts'
import { postTransfer } from './post-transfer.ts'

const hex = z.templateLiteral(['0x', z.string()])
const credentials = z.object({
  demoApiKey: z.string(),
  chain: z.object({ rpcUrl: z.string(), tokens: z.object({ USDC: hex }) }),
})
const wallet = z.object({
  safeAddress: hex,
  balances: z.array(z.object({ token: z.string(), amount: z.string(), held: z.string() })),
})

let directory: string
const running: Gateway[] = []
const start = async (env: Record<string, string> = {}) => {
  const gateway = await startGateway({ DATA_DIR: directory, ...env })
  running.push(gateway)
  return gateway
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'bursar-'))
})
afterEach(async () => {
  for (const { process } of running.splice(0))
    if (process.exitCode === null && process.signalCode === null) process.kill('SIGKILL')
  await pause(100)
  rmSync(directory, { recursive: true, force: true })
})

async function createKey({ origin }: Gateway): Promise<string> {
  return credentials.parse(await (await fetch(`${origin}/sandbox/credentials`)).json()).demoApiKey
}

const transfer = async ({ origin }: Gateway, key: string, amount: string, idempotencyKey: string) =>
  postTransfer(origin, key, { amount, idempotencyKey })

/** The demo wallet's USDC in the ledger and on the chain. */
async function readUsdc(
  gateway: Gateway,
  key: string,
): Promise<{ amount: string; held: string; onChain: bigint }> {
  const { chain } = credentials.parse(await (await fetch(`${gateway.origin}/sandbox/credentials`)).json())
  const { safeAddress, balances } = wallet.parse(
    await (
      await fetch(`${gateway.origin}/api/wallets`, { headers: { authorization: `Bearer ${key}` } })
    ).json(),
  )
  const { amount = '', held = '' } = balances.find(({ token }) => token === 'USDC') ?? {}
  const client = createPublicClient({ chain: baseSepolia, transport: http(chain.rpcUrl) })
  const onChain = await client.readContract({
    address: chain.tokens.USDC,
    abi: erc20Abi,
    functionName: 'balanceOf',
    args: [safeAddress],
  })
  return { amount, held, onChain }
}

function findChildren(pid: number | undefined): number[] {
  const rows = execFileSync('ps', ['-eo', 'pid=,ppid=,comm='], { encoding: 'utf8' }).trim().split('\n')
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(([, parent, command]) => Number(parent) === pid && command === 'anvil')
    .map(([child]) => Number(child))
}

describe('a gateway on a directory', () => {
  it('keeps its books, keys and idempotency over a clean restart and a kill -9, and restores its chain from them', async () => {
    const first = await start()
    const key = await createKey(first)
    const answer = await (await transfer(first, key, '1.5', 'kept')).json()
    expect(answer).toMatchObject({ status: 'confirmed' })
    expect(await first.stop()).toBe(0)

    const second = await start()
    expect(await createKey(second)).toBe(key)
    expect(await readUsdc(second, key)).toEqual({ amount: '998.5', held: '0', onChain: 998_500_000n })
    const again = await transfer(second, key, '1.5', 'kept')
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(await again.json()).toEqual(answer)
    expect((await transfer(second, key, '2', 'also-kept')).status).toBe(200)
    second.process.kill('SIGKILL')
    await once(second.process, 'exit')

    const third = await start()
    expect(await readUsdc(third, key)).toEqual({ amount: '996.5', held: '0', onChain: 996_500_000n })
    expect((await transfer(third, key, '1', 'after')).status).toBe(200)
    expect(await readUsdc(third, key)).toEqual({ amount: '995.5', held: '0', onChain: 995_500_000n })
  }, 90_000)

  it('refuses a second process with an error that states the remedy', async () => {
    const first = await start()
    await expect(start()).rejects.toThrow(new RegExp(`${first.process.pid}`))
    expect((await fetch(`${first.origin}/readyz`)).status).toBe(200)
  })
})

describe('a gateway whose chain process is killed', () => {
  it('detects it, starts another, restores it from the ledger, and continues', async () => {
    const gateway = await start()
    const key = await createKey(gateway)
    expect((await transfer(gateway, key, '1', 'before')).status).toBe(200)
    const [anvil] = findChildren(gateway.process.pid)
    if (anvil === undefined) throw new Error('the gateway runs no anvil')
    process.kill(anvil, 'SIGKILL')
    let status: unknown
    for (let attempt = 0; attempt < 80 && status !== 'confirmed'; attempt += 1) {
      const response = await transfer(gateway, key, '2', 'during')
      expect([200, 409, 503]).toContain(response.status)
      status = z.object({ status: z.unknown() }).parse(await response.json()).status
      await pause(250)
    }
    expect(status).toBe('confirmed')
    const [next] = findChildren(gateway.process.pid)
    expect(next).not.toBe(anvil)
    expect(await readUsdc(gateway, key)).toEqual({ amount: '997', held: '0', onChain: 997_000_000n })
    await gateway.stop()
    expect(findChildren(gateway.process.pid)).toEqual([])
  })
})
