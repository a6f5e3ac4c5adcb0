/** A gateway on two local chains behind proxies, on either engine, with a guest and helpers that compare its books with both chains. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPublicClient, erc20Abi, http } from 'viem'
import { expect } from 'vitest'
import { z } from 'zod'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { ownContracts } from '../../src/chain/rpc/networks.ts'
import { chainFacts } from '../../src/core/money/chains.ts'
import type { Address } from '../../src/providers/chain/port.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { freePort } from '../free-port.ts'
import { expectRecomputed } from '../records/decisions/verify-bundle.ts'
import { type ChainProxy, type Step, startChainProxy } from './chain-proxy.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, type Person, requestJson } from './people.ts'

export const chainNames = ['base-sepolia', 'arbitrum-sepolia'] as const
export type ChainName = (typeof chainNames)[number]

const text = z.string()
const walletView = z.object({
  balances: z.array(z.looseObject({ token: text, chain: text, amount: text, held: text })),
})
const toUnits = (amount: string) => BigInt(Math.round(Number(amount) * 1e6))

export interface Balance {
  readonly available: bigint
  readonly held: bigint
}

export interface TwoChains {
  /** The person as which a call is sent; a gateway that was started anew has another origin. */
  send(
    credential: string,
    method: string,
    path: string,
    body?: object,
    headers?: Record<string, string>,
  ): ReturnType<typeof requestJson>
  /** Where the gateway is now. */
  readOrigin(): string
  newGuest(): Promise<Person>
  setMode(mode: string): Promise<void>
  /** URL of a chain's node, not of its proxy. */
  urlOf(name: ChainName): string
  /** Sends a method to a chain's node. */
  rpc(name: ChainName, method: string, params: unknown[]): Promise<unknown>
  readChain(name: ChainName, holder: Address): Promise<bigint>
  readBooked(credential: string, name: ChainName): Promise<Balance>
  /** Books are what both chains show. */
  expectEqual(credential: string, holder: Address): Promise<void>
  /** The books, exported and recomputed. */
  expectRecomputed(): Promise<void>
  /** Kills the gateway at a step of the nth transaction of a chain. @returns once it is dead. */
  killAt(name: ChainName, step: Step, nth: number): Promise<void>
  kill(): Promise<void>
  /** Whether a chain's node answers nothing. */
  silence(name: ChainName, isSilent: boolean): void
  restart(): Promise<void>
  stop(): Promise<void>
}

export async function startTwoChains(isPostgres: boolean): Promise<TwoChains> {
  const nodes = new Map<ChainName, AnvilProcess>()
  const proxies = new Map<ChainName, ChainProxy>()
  const buildUrl = (name: ChainName) => nodes.get(name)?.url ?? 'http://127.0.0.1:9'
  for (const name of chainNames) {
    nodes.set(name, await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000, name))
    proxies.set(name, await startChainProxy(() => buildUrl(name)))
  }
  const directory = mkdtempSync(join(tmpdir(), 'bursar-two-chains-'))
  const database = isPostgres ? await createTestDatabase(testServerUrl ?? '') : null
  const env = {
    CHAINS: chainNames.join(','),
    CHAIN_RPC_URL_BASE_SEPOLIA: proxies.get('base-sepolia')?.url ?? '',
    CHAIN_RPC_URL_ARBITRUM_SEPOLIA: proxies.get('arbitrum-sepolia')?.url ?? '',
    RATE_MUTATIONS: '100000/60',
    // People stay signed in over a restart: sessions name the origin.
    PORT: String(await freePort()),
    ...(database === null ? { DATA_DIR: directory } : { DATABASE_URL: database.url }),
  }
  let gateway: Gateway = await startGateway(env)
  const readChain = (name: ChainName, holder: Address) =>
    createPublicClient({ transport: http(buildUrl(name)) }).readContract({
      address: chainFacts(name).tokens.USDC.address,
      abi: erc20Abi,
      functionName: 'balanceOf',
      args: [holder],
    })
  const send: TwoChains['send'] = (credential, method, path, body, headers = {}) =>
    requestJson(gateway.origin, method, path, {
      ...(body === undefined ? {} : { body }),
      headers: { authorization: `Bearer ${credential}`, ...headers },
    })
  const readBooked = async (credential: string, name: ChainName) => {
    const { body } = await send(credential, 'GET', '/api/wallets')
    const { balances } = walletView.parse(body)
    const row = balances.find(({ token, chain }) => token === 'USDC' && chain === name)
    return { available: toUnits(row?.amount ?? '0'), held: toUnits(row?.held ?? '0') }
  }
  const kill = async () => {
    gateway.process.kill('SIGKILL')
    if (gateway.process.exitCode === null && gateway.process.signalCode === null)
      await once(gateway.process, 'exit')
  }
  return {
    send,
    readChain,
    readBooked,
    kill,
    urlOf: buildUrl,
    readOrigin: () => gateway.origin,
    newGuest: () => newGuest(gateway.origin),
    setMode: async (mode) => {
      const { status } = await requestJson(gateway.origin, 'POST', '/sandbox/bridge', { body: { mode } })
      expect(status).toBe(200)
    },
    rpc: async (name, method, params) => {
      const response = await fetch(buildUrl(name), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      })
      const answer = z.looseObject({ result: z.unknown() }).parse(await response.json())
      expect(answer).not.toHaveProperty('error')
      return answer.result
    },
    expectRecomputed: async () => {
      // The newest decisions are sealed within seconds, and nobody else has the embedded database open.
      await new Promise((resolve) => setTimeout(resolve, 3_000))
      await gateway.stop()
      await expectRecomputed(database === null ? { DATA_DIR: directory } : { DATABASE_URL: database.url })
      gateway = await startGateway(env)
    },
    expectEqual: async (credential, holder) => {
      for (const name of chainNames) {
        const { available, held } = await readBooked(credential, name)
        expect({ name, units: available + held }).toEqual({ name, units: await readChain(name, holder) })
        expect(await readChain(name, ownContracts.bridgeDesk.address)).toBe(0n)
      }
    },
    killAt: (name, step, nth) =>
      new Promise<void>((resolve) => {
        proxies.get(name)?.cut(step, nth, async () => {
          await kill()
          resolve()
        })
      }),
    silence: (name, isSilent) => proxies.get(name)?.silence(isSilent),
    restart: async () => {
      gateway = await startGateway(env)
    },
    stop: async () => {
      await gateway.stop()
      for (const proxy of proxies.values()) await proxy.close()
      for (const node of nodes.values()) await node.stop()
      await database?.drop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
