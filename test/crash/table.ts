/**
 * `npm run crash-table`: what buyers pay when sellers or the network fail after the payment was taken. Counted are transfers on the
 * chain, to a payee of its own for each purchase. `-- --purchases N` a kind (20), `--only TEXT` buyers whose name has it,
 * `--run N` only that table, `--minutes N` begins no purchase later, and counts those that were made.
 */
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { evm, Mppx } from 'mppx/client'
import { createPublicClient, http, parseAbiItem } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { Bursar } from '../../src/client/index.ts'
import type { Chain } from '../../src/providers/chain/port.ts'
import { openBench } from '../bench/x402.ts'
import { newBuyer, startTestProxy } from '../commands/proxy/scene.ts'
import { newCustomer } from '../rails/selling/x402/scene.ts'
import { type Kind, kinds, payeesOf, startTableSellers } from './table-sellers.ts'

const AT_ONCE = 24
const TIMEOUT_MS = 30_000
const PAUSE_MS = 50
/** Late settlements of the last purchases. */
const SETTLE_MS = 2_000
const FUNDS = 1_000_000_000n

/** Buys a URL. @param key names the purchase, for buyers that know one. @returns whether the goods came. */
type Pay = (url: string, key: string) => Promise<boolean>

interface Buyer {
  readonly name: string
  readonly pay: Pay
}

/** @property tries how often the caller asks for a purchase that did not come. @property isForgetful see startTableSellers. */
interface Run {
  readonly title: string
  readonly tries: number
  readonly isForgetful: boolean
}

const runs: readonly Run[] = [
  {
    title: 'A caller who tries three times; sellers that deliver when a payment is presented again',
    tries: 3,
    isForgetful: false,
  },
  { title: 'A caller who tries once; the same sellers', tries: 1, isForgetful: false },
  {
    title: 'A caller who tries three times; sellers that refuse a payment presented again, as stock ones do',
    tries: 3,
    isForgetful: true,
  },
]

const { values } = parseArgs({
  options: {
    purchases: { type: 'string' },
    only: { type: 'string' },
    run: { type: 'string' },
    minutes: { type: 'string' },
  },
})
const purchases = readCount('purchases') ?? 20
const chosenRun = readCount('run')
const until = performance.now() + (readCount('minutes') ?? Number.POSITIVE_INFINITY) * 60_000

const bench = await openBench({ databaseUrl: null, limit: 'RATE_MUTATIONS' })
const { chain, gateway } = bench
const agent = await newBuyer(gateway.origin, { dailyBudget: { max: '500' } })
const proxy = await startTestProxy(agent, gateway.origin, '--budget', '500', '--max-price', '0.01')
try {
  const buyers = (await openBuyers()).filter(({ name }) => name.includes(values.only ?? ''))
  const start = performance.now()
  for (const [at, run] of runs.entries())
    if (chosenRun === null || chosenRun === at + 1) process.stdout.write(`${await runTable(run, buyers)}\n`)
  process.stdout.write(`\n${Math.round((performance.now() - start) / 1_000)} s\n`)
} finally {
  await proxy.stop()
  await bench.close()
}

function readCount(option: 'purchases' | 'run' | 'minutes'): number | null {
  const text = values[option]
  if (text === undefined) return null
  const count = Number(text)
  if (!Number.isInteger(count) || count < 1) throw new Error(`--${option} needs a whole number`)
  return count
}

async function openBuyers(): Promise<readonly Buyer[]> {
  const customer = await newCustomer(chain, FUNDS)
  const account = privateKeyToAccount(generatePrivateKey())
  await chain.mint([{ token: 'USDC', to: account.address, units: FUNDS }])
  const mpp = Mppx.create({
    polyfill: false,
    methods: [
      evm({
        account,
        currencies: [chain.tokens.USDC],
        networks: [84532],
        decimals: 6,
        authorization: { name: 'USDC', version: '2' },
      }),
    ],
  })
  const { body } = await agent.owner.send('POST', '/api/developer/keys', {
    name: 'Table',
    scopes: ['purchases:pay'],
    policy: {
      perTransaction: { max: '1' },
      dailyBudget: { max: '500' },
      categories: { allow: ['x402'] },
    },
  })
  const apiKey = String(body.key)
  const bursar = new Bursar({ url: gateway.origin, apiKey })
  return [
    { name: nameStock('@x402/fetch'), pay: async (url) => (await customer.v2(url)).ok },
    { name: nameStock('x402-fetch'), pay: async (url) => (await customer.v1(url)).ok },
    {
      name: `${nameStock('mppx')} (MPP)`,
      pay: async (url) => (await mpp.fetch(url.replace(/(:\d+)\//, '$1/mpp/'))).ok,
    },
    {
      name: 'Bursar, POST /api/purchases',
      pay: async (url, idempotencyKey) => {
        const bought = await bursar.purchases.buy({ url, maxAmount: '0.01' }, { idempotencyKey })
        return bought.status === 'delivered'
      },
    },
    {
      name: 'Bursar, bursar.fetch',
      pay: async (url) => (await bursar.fetch(url, {}, { maxPrice: '0.01' })).ok,
    },
    { name: 'Bursar, bursar proxy', pay: askThroughProxy },
  ]
}

/** A program that knows nothing of payments. */
function askThroughProxy(url: string): Promise<boolean> {
  const login = Buffer.from(`bursar:${proxy.token}`).toString('base64')
  return new Promise((resolve, reject) => {
    const asking = request({
      host: '127.0.0.1',
      port: proxy.port,
      path: url,
      headers: { host: new URL(url).host, 'proxy-authorization': `Basic ${login}` },
      timeout: TIMEOUT_MS,
    })
    asking.on('timeout', () => asking.destroy(new Error('no answer')))
    asking.on('error', reject)
    asking.on('response', (answer) => {
      answer.resume()
      answer.on('error', reject)
      answer.on('end', () => resolve(answer.statusCode === 200))
    })
    asking.end()
  })
}

function nameStock(name: string): string {
  const { version }: { version: string } = JSON.parse(
    readFileSync(`node_modules/${name}/package.json`, 'utf8'),
  )
  return `${name} ${version}`
}

async function runTable({ title, tries, isForgetful }: Run, buyers: readonly Buyer[]): Promise<string> {
  const sellers = await startTableSellers(chain, isForgetful)
  const fromBlock = (await chain.blockNumber()) + 1n
  const slug = ({ name }: Buyer) => name.replaceAll(/[^a-z0-9]+/gi, '-')
  // Named by the run too: payees are counted from its first block on, and keys are used once.
  const work = Array.from({ length: purchases }, (_, number) => number).flatMap((number) =>
    kinds.flatMap((kind) => buyers.map((buyer) => ({ number, kind, buyer }))),
  )
  const total = work.length
  const progress = setInterval(
    () => process.stderr.write(`${title}: ${total - work.length} of ${total}\n`),
    10_000,
  )
  const begun = new Set<number>()
  const client = async () => {
    for (let next = work.pop(); next !== undefined && performance.now() < until; next = work.pop()) {
      const { number, kind, buyer } = next
      begun.add(number)
      const url = `${sellers.origin}/${kind}/${slug(buyer)}/${number}`
      for (let asked = 0; asked < tries; asked += 1) {
        if (await buyer.pay(url, url).catch(() => false)) break
        await pause(PAUSE_MS)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, client))
  clearInterval(progress)
  await pause(SETTLE_MS)
  const payments = await countPayments(fromBlock)
  const summarize = (kind: Kind, buyer: string) => {
    const counts = [...begun].map((number) => ({
      paid: payeesOf(kind, buyer, number).reduce((sum, payee) => sum + (payments.get(payee) ?? 0), 0),
      isDelivered: sellers.wasDelivered(kind, buyer, number),
    }))
    return {
      paid: counts.reduce((sum, { paid }) => sum + paid, 0),
      double: counts.reduce((sum, { paid }) => sum + Math.max(0, paid - 1), 0),
      delivered: counts.filter(({ isDelivered }) => isDelivered).length,
    }
  }
  const lines = buyers.map((buyer) => {
    let double = 0
    const cells = kinds.map((kind) => {
      const cell = summarize(kind, slug(buyer))
      double += cell.double
      return `${cell.paid} / ${cell.double} / ${cell.delivered}`
    })
    return `| ${buyer.name} | ${cells.join(' | ')} | **${double}** |`
  })
  await sellers.close()
  return [
    `\n${title}. ${begun.size} purchases a cell${begun.size < purchases ? ', the last perhaps not by all' : ''}: payments / of these double / purchases delivered.\n`,
    `| buyer | ${kinds.join(' | ')} | double payments |`,
    `|---|${kinds.map(() => '---').join('|')}|---|`,
    ...lines,
  ].join('\n')
}

/** Payments of USDC since a block, by payee. */
async function countPayments(fromBlock: bigint): Promise<ReadonlyMap<string, number>> {
  const client = createPublicClient({ transport: http(requireRpcUrl(chain)) })
  const event = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 value)')
  const logs = await client.getLogs({ address: chain.tokens.USDC, event, fromBlock })
  const counts = new Map<string, number>()
  for (const { args } of logs) if (args.to !== undefined) counts.set(args.to, (counts.get(args.to) ?? 0) + 1)
  return counts
}

function requireRpcUrl({ rpcUrl }: Chain): string {
  if (rpcUrl === null) throw new Error('the chain has no node')
  return rpcUrl
}
