/** Gateways on two public chains of this machine, whose Safes get another owner. */
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect } from 'vitest'
import { createKeyRing } from '../../../../src/chain/accounts/key-ring.ts'
import { connectRpcChain } from '../../../../src/chain/rpc.ts'
import { systemClock } from '../../../../src/core/base/clock.ts'
import { newId } from '../../../../src/core/base/ids.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import { createAccount } from '../../../../src/people/identity/accounts.ts'
import type { Address, AuthorizedOperation, Chain, Wallet } from '../../../../src/providers/chain/port.ts'
import { createEnvironmentKey } from '../../../../src/providers/keys/environment.ts'
import { bookDeposit, openWallet } from '../../../../src/rails/wallets/open-wallet.ts'
import {
  countOwnersLeft,
  readOwnerBook,
  readRotations,
} from '../../../../src/rails/wallets/owners/owner-store.ts'
import { createSwapOwners } from '../../../../src/rails/wallets/owners/swap-owners.ts'
import { findOwnedWallet } from '../../../../src/rails/wallets/store.ts'
import { claimDeployment } from '../../../../src/records/decisions/deployment.ts'
import type { Database } from '../../../../src/storage/database.ts'
import { type Mainnet, startMainnet } from '../../../journeys/mainnet.ts'

const sponsor = generatePrivateKey()

export const lower = (address: Address): Address => `0x${address.slice(2).toLowerCase()}`
export const newKey = () => privateKeyToAccount(generatePrivateKey())
export type Key = ReturnType<typeof newKey>

type Name = 'base' | 'arbitrum'
const NAMES: readonly [Name, Name] = ['base', 'arbitrum']

/** @property base the first chain. @property round a round of the job, on every chain. */
export interface OwningGateway {
  readonly base: Chain
  readonly chains: readonly Chain[]
  round(): Promise<number>
}

/** Nodes of Base and Arbitrum, shared by the suites of a file. */
export function startNodes() {
  const nodes = new Map<string, Mainnet>()
  beforeAll(async () => {
    for (const name of NAMES) {
      const node = await startMainnet(name, { hasOwnContracts: true })
      nodes.set(name, node)
      await node.giveGas(privateKeyToAccount(sponsor).address)
    }
  }, 240_000)
  afterAll(async () => {
    for (const node of nodes.values()) await node.close()
  }, 60_000)
  return (chain: Pick<Chain, 'name'> | { readonly name: Name }): Mainnet => {
    const node = nodes.get(chain.name)
    if (node === undefined) throw new Error(`there is no node of ${chain.name}`)
    return node
  }
}

/** @param nodeOf the node of a chain. */
export function openScene(database: () => Database, nodeOf: ReturnType<typeof startNodes>) {
  const opened: Chain[] = []
  afterAll(async () => {
    for (const chain of opened) await chain.close()
  })

  async function claim(current: Key, previous?: Key): Promise<void> {
    const chainOwners = {
      current: lower(current.address),
      previous: previous === undefined ? null : lower(previous.address),
    }
    await claimDeployment(database(), { dataKey: null, chainId: 8453, chainOwners }, systemClock())
  }

  /** Starts a gateway as a process does. @param change of its chains, for faults. */
  async function start(
    current: Key,
    previous?: Key,
    {
      names = NAMES,
      change = (chain) => chain,
    }: { names?: readonly Name[]; change?: (chain: Chain) => Chain } = {},
  ): Promise<OwningGateway> {
    await claim(current, previous)
    const owners = createKeyRing(current, previous)
    const connect = async (name: Name) =>
      connectRpcChain({
        name,
        url: nodeOf({ name }).url,
        clock: systemClock,
        log: silentLog,
        sponsor: createEnvironmentKey(sponsor),
        owners,
      })
    const chains = await Promise.all(names.map(connect))
    opened.push(...chains)
    const book = await readOwnerBook(database())
    if (book === null) throw new Error('the database has no owner')
    for (const chain of chains) chain.adoptOwners(book)
    const parts = {
      database: database(),
      chains: { all: chains, absent: [] },
      clock: systemClock,
      log: silentLog,
    }
    const rounds = chains.map((chain) => createSwapOwners({ ...parts, chain: change(chain) }))
    const [base] = chains
    if (base === undefined) throw new Error('a gateway has a chain')
    return {
      base,
      chains,
      round: async () => {
        const counts = await Promise.all(rounds.map((round) => round(new AbortController().signal)))
        return counts.reduce((sum, one) => sum + one, 0)
      },
    }
  }

  async function openAccount(chain: Chain): Promise<Wallet & { address: Address }> {
    const at = systemClock()
    const account = { displayName: 'Test', guest: true, at }
    const { id } = await createAccount({ database: database(), newId }, account)
    await openWallet({ database: database(), chain }, { accountId: id, at })
    return readWallet(id)
  }

  async function readWallet(accountId: string): Promise<Wallet & { address: Address }> {
    const wallet = await findOwnedWallet(database(), accountId)
    if (wallet === undefined) throw new Error('the account has no wallet')
    return wallet
  }

  /** Puts 10 USDC into a Safe on a chain. */
  async function send(chain: Chain, address: Address): Promise<`0x${string}`> {
    const node = nodeOf(chain)
    const hash = await node.pay(address, 10_000_000n)
    await node.client.waitForTransactionReceipt({ hash })
    return hash
  }

  /** The same into a wallet, and into the books. */
  async function fund(chain: Chain, { address, accountId }: Wallet & { address: Address }): Promise<void> {
    const reference = await send(chain, address)
    const funds = [{ asset: 'USDC', units: 10_000_000n }] as const
    await bookDeposit(
      { database: database(), chain, newId },
      { accountId, funds, reference, at: systemClock() },
    )
  }

  async function awaitExecuted(chain: Chain, operation: AuthorizedOperation): Promise<void> {
    const read = async () => (await chain.awaitExecution(operation, 5_000)).status
    await expect.poll(read, { timeout: 60_000 }).toBe('executed')
  }

  /** Pays 1 USDC to a new address. */
  async function pay(
    chain: Chain,
    wallet: Wallet,
    authorization: AuthorizedOperation['authorization'] = { kind: 'gateway' },
  ): Promise<void> {
    const payment = newPayment(wallet, authorization)
    expect(await chain.submit(payment)).toMatchObject({ status: 'submitted' })
    await awaitExecuted(chain, payment)
    expect(await nodeOf(chain).readBalance(payment.call.to)).toBe(1_000_000n)
  }

  const isFinished = async (to: Key) =>
    (await readRotations(database())).find((one) => one.to === lower(to.address))?.isFinished

  return {
    claim,
    start,
    openAccount,
    readWallet,
    send,
    fund,
    pay,
    awaitExecuted,
    isFinished,
    readOwners: async (chain: Chain, wallet: Wallet) =>
      (await chain.readSafe(wallet, 'latest'))?.owners ?? null,
    /** Safes that are left, on Base and on Arbitrum. */
    countLeft: async (to: Key) => {
      const counts = await countOwnersLeft(database(), { chains: NAMES, to: lower(to.address) })
      return counts.map(({ left }) => left)
    },
    runUntilFinished: async (gateway: OwningGateway, to: Key) => {
      const run = async () => {
        await gateway.round()
        return isFinished(to)
      }
      await expect.poll(run, { timeout: 150_000, interval: 500 }).toBe(true)
    },
  }
}

export function newPayment(
  wallet: Wallet,
  authorization: AuthorizedOperation['authorization'] = { kind: 'gateway' },
) {
  return {
    wallet,
    id: newId('tx', systemClock()),
    call: { kind: 'transfer', token: 'USDC', to: newKey().address, units: 1_000_000n },
    validUntil: new Date(Date.now() + 600_000),
    authorization,
  } as const satisfies AuthorizedOperation
}
