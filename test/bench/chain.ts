/**
 * Confirmed transfers on the local chain: the bare chain's own rate for an ERC-20 transfer (every sender signs,
 * broadcasts and waits for its receipt), against bundled operations of smart accounts, and against whole transfers with
 * reservation, books and rows in PostgreSQL. Alternating on one node. `npx tsx test/bench/chain.ts`, about 40 seconds.
 */
import { pathToFileURL } from 'node:url'
import { encodeFunctionData } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { operationOutcome } from '../../src/books/evidence/operation-outcome.ts'
import { tokenAbi } from '../../src/chain/contracts/abi.ts'
import { findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { awaitReceipt } from '../../src/chain/relay/receipts.ts'
import { createNodeClient, localNodeOptions } from '../../src/chain/rpc/client.ts'
import { connectRpcChain } from '../../src/chain/rpc.ts'
import { systemClock } from '../../src/core/base/clock.ts'
import { silentLog } from '../../src/core/base/log.ts'
import type { Chain } from '../../src/providers/chain/port.ts'
import { sendTransfer } from '../../src/rails/wallets/transfers/send-transfer.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { buildTransfer, buildWallet, newAddress } from '../contracts/chain.ts'
import { createTestDatabase } from '../engines.ts'
import { openFundedAccount, reserveOrder, sendingDependencies } from '../rails/wallets/scene.ts'

/** Senders, each waiting for its transfer before it sends the next. */
const SENDERS = 64
/** Odd: the round with the median ratio counts. */
const ROUNDS = 3
const SECONDS = 3

/** One measurement, in confirmed transfers a second. */
export interface ChainBenchLine {
  readonly name: string
  readonly rate: number
  readonly floor: number
}

/** Runs the benchmark. @param serverUrl of the PostgreSQL server. */
export async function benchChain(serverUrl: string): Promise<readonly ChainBenchLine[]> {
  const node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
  const chain = await connectRpcChain({
    name: 'base-sepolia',
    url: node.url,
    clock: systemClock,
    log: silentLog,
  })
  try {
    const bare = await bareSenders(node.url, chain)
    const wallets = await walletSenders(chain)
    const whole = await wholeSenders(serverUrl, chain)
    try {
      const lines = [
        await compare('smart accounts in bundles', bare, wallets),
        await compare('with reservation, books and rows', bare, whole.send),
      ]
      return lines
    } finally {
      await whole.close()
    }
  } finally {
    await chain.close()
    await node.stop()
  }
}

/** Sends one transfer of a sender and resolves when it is confirmed. */
type Send = (sender: number) => Promise<void>

async function compare(name: string, bare: Send, ours: Send): Promise<ChainBenchLine> {
  await sendFor(0.5, bare)
  await sendFor(0.5, ours)
  const rounds: ChainBenchLine[] = []
  for (let round = 0; round < ROUNDS; round += 1)
    rounds.push({ name, floor: await sendFor(SECONDS, bare), rate: await sendFor(SECONDS, ours) })
  rounds.sort((left, right) => left.rate / left.floor - right.rate / right.floor)
  return rounds[(ROUNDS - 1) / 2] ?? { name, floor: 1, rate: 0 }
}

async function sendFor(seconds: number, send: Send): Promise<number> {
  const start = performance.now()
  const end = start + seconds * 1_000
  let confirmed = 0
  const sender = async (index: number) => {
    while (performance.now() < end) {
      await send(index)
      confirmed += 1
    }
  }
  await Promise.all(Array.from({ length: SENDERS }, (_, index) => sender(index)))
  return (confirmed * 1_000) / (performance.now() - start)
}

/** Accounts with a key, each of which sends one transfer and waits for its receipt. */
export async function bareSenders(url: string, chain: Chain, count = SENDERS): Promise<Send> {
  const client = createNodeClient(localNodeOptions('base-sepolia', url))
  const senders = Array.from({ length: count }, () => ({
    account: privateKeyToAccount(generatePrivateKey()),
    nonce: 0,
  }))
  await chain.mint(senders.map(({ account }) => ({ token: 'USDC', to: account.address, units: 10n ** 12n })))
  for (const { account } of senders) await chain.fundGas(account.address, 10n ** 18n)
  const to = newAddress()
  const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args: [to, 1n] })
  return async (index) => {
    const sender = senders[index]
    if (sender === undefined) throw new Error('no such sender')
    const serializedTransaction = await sender.account.signTransaction({
      type: 'eip1559',
      chainId: chain.id,
      nonce: sender.nonce,
      to: chain.tokens.USDC,
      data,
      gas: 100_000n,
      maxFeePerGas: 10n ** 10n,
      maxPriorityFeePerGas: 0n,
    })
    const hash = await client.sendRawTransaction({ serializedTransaction })
    const { status } = await awaitReceipt(client, hash, 10_000)
    if (status !== 'success') throw new Error('the bare chain reverted a transfer')
    sender.nonce += 1
  }
}

async function walletSenders(chain: Chain): Promise<Send> {
  const accounts = Array.from({ length: SENDERS }, (_, index) => `acct_bench_${index}`)
  const wallets = await Promise.all(accounts.map((account) => chain.walletAddress(buildWallet(account))))
  await chain.mint(wallets.map((to) => ({ token: 'USDC', to, units: 10n ** 12n })))
  const to = newAddress()
  return async (index) => {
    const transfer = buildTransfer(accounts[index] ?? '', to, 1n)
    const submission = await chain.submit(transfer)
    if (submission.status === 'refused') throw new Error(submission.reason)
    const { status } = await operationOutcome(chain, transfer, 10_000)
    if (status !== 'confirmed') throw new Error(`a transfer is ${status}`)
  }
}

async function wholeSenders(
  serverUrl: string,
  chain: Chain,
): Promise<{ send: Send; close: () => Promise<void> }> {
  const { url, drop } = await createTestDatabase(serverUrl)
  const database = await openPostgres({ url })
  await database.migrate()
  const sending = sendingDependencies(database, chain)
  const accounts: string[] = []
  for (let index = 0; index < SENDERS; index += 1) accounts.push((await openFundedAccount(sending)).accountId)
  return {
    send: async (index) => {
      const order = await reserveOrder(sending, { accountId: accounts[index] ?? '', units: 1n })
      const { status } = await sendTransfer(sending, order)
      if (status !== 'confirmed') throw new Error(`a transfer is ${status}`)
    },
    close: async () => {
      await database.close()
      await drop()
    },
  }
}

export function chainBenchText({ name, rate, floor }: ChainBenchLine): string {
  return `${name}: ${rate.toFixed(0)}/s, bare ERC-20 transfers ${floor.toFixed(0)}/s, ratio ${(rate / floor).toFixed(2)}`
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  for (const line of await benchChain(
    process.env.TEST_DATABASE_URL ?? 'postgres://postgres@127.0.0.1:5432/postgres',
  ))
    process.stdout.write(`${chainBenchText(line)}\n`)
