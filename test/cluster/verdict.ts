/** Compares what callers were answered with books and chain, after a fault. */
import { sql } from 'kysely'
import { createPublicClient, erc20Abi, http, parseAbiItem } from 'viem'
import { baseSepolia } from 'viem/chains'
import { expect } from 'vitest'
import { z } from 'zod'
import { trialBalance } from '../../src/books/ledger/trial-balance.ts'
import type { Database } from '../../src/storage/database.ts'
import { expectEventsOfEffects } from '../records/events/effects.ts'
import { type Call, callUntilFinal, type Payer, UNITS } from './load.ts'
import { until } from './nodes.ts'

const USDC = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const TRANSFER = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 value)')
/** A hold ends by itself within this. */
const HOLD_MS = 60_000

const wallet = z.object({
  safeAddress: z.templateLiteral(['0x', z.string()]),
  balances: z.array(z.object({ token: z.string(), amount: z.string(), held: z.string() })),
})

export interface Verdict {
  /** Calls that were answered as confirmed. */
  readonly answered: number
  /** Calls whose final answer is a refusal: their hold was released. */
  readonly refused: number
  /** Of the answered ones: another outcome now, not in the books, or not on the chain. */
  readonly lost: number
  /** Movements on the chain beyond one per confirmed transfer. */
  readonly doubled: number
}

interface Judged {
  readonly origin: string
  readonly rpcUrl: string
  readonly database: Database
  readonly destination: `0x${string}`
  readonly calls: readonly Call[]
  readonly payers: readonly Payer[]
}

/** Repeats every call, and compares. @throws if books and chain differ, or money stays held. */
export async function judge(judged: Judged): Promise<Verdict> {
  const { origin, rpcUrl, database, destination, calls, payers } = judged
  let lost = 0
  const confirmed = new Set<string>()
  const told = calls.map(({ answers }) => [...answers])
  const repeat = async (at: number, call: Call) => {
    const now = await callUntilFinal(origin, destination, call)
    const before = told[at] ?? []
    const wasTold = before.find(({ isFinal }) => isFinal)
    const ids = new Set(before.flatMap(({ transferId }) => transferId ?? []))
    const isSame =
      (wasTold === undefined || (wasTold.code === now.code && wasTold.transferId === now.transferId)) &&
      [...ids].every((id) => id === now.transferId)
    if (!isSame) lost += 1
    if (now.code === 'confirmed' && now.transferId !== undefined) confirmed.add(now.transferId)
  }
  const left = [...calls.entries()]
  const repeatAll = async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) await repeat(...next)
  }
  await Promise.all(payers.map(repeatAll))
  await until('no hold of the callers', HOLD_MS, async () => (await countHolds(database, payers)) === 0)
  const inBooks = await database.kysely
    .selectFrom('transfer')
    .select('id')
    .where('destination', '=', destination.toLowerCase())
    .where('state', '=', 'confirmed')
    .execute()
  const booked = new Set(inBooks.map(({ id }) => id))
  lost += [...confirmed].filter((id) => !booked.has(id)).length
  const chain = createPublicClient({ chain: baseSepolia, transport: http(rpcUrl) })
  const moved = await chain.getLogs({
    address: USDC,
    event: TRANSFER,
    args: { to: destination },
    fromBlock: 0n,
  })
  for (const { args } of moved) expect(args.value).toBe(UNITS)
  lost += Math.max(0, confirmed.size - moved.length)
  const doubled = Math.max(0, moved.length - confirmed.size) + Math.max(0, booked.size - confirmed.size)

  const balanceOf = (address: `0x${string}`) =>
    chain.readContract({ address: USDC, abi: erc20Abi, functionName: 'balanceOf', args: [address] })
  for (const { person } of payers) {
    const { safeAddress, balances } = wallet.parse((await person.send('GET', '/api/wallets')).body)
    const { amount = '', held = '' } = balances.find(({ token }) => token === 'USDC') ?? {}
    expect({ held, units: BigInt(Math.round(Number(amount) * 1e6)) }).toEqual({
      held: '0',
      units: await balanceOf(safeAddress),
    })
  }
  expect(await trialBalance(database)).toMatchObject({ balanced: true, drifts: [] })
  await expectEventsOfEffects(database)
  const finals = calls.map(({ answers }) => answers.at(-1)?.code)
  return {
    answered: finals.filter((code) => code === 'confirmed').length,
    refused: finals.filter((code) => code !== 'confirmed').length,
    lost,
    doubled,
  }
}

async function countHolds({ kysely }: Database, payers: readonly Payer[]): Promise<number> {
  const { rows } = await sql<{ count: bigint }>`
    select count(*)::bigint as count from reservation
    where status = 'reserved' and account_id in (${sql.join(payers.map(({ person }) => person.accountId))})`.execute(
    kysely,
  )
  return Number(rows[0]?.count ?? 0n)
}
