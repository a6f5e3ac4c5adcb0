/** A process that spends from the keys it is given until it is killed. @see budgets.ts */
import { budgetRules } from '../../policies/budget.ts'
import { toUsdMicros } from '../../policies/usd.ts'
import { releaseSpend } from '../../src/books/spending/release.ts'
import { createReserveQueue } from '../../src/books/spending/reserve-queue.ts'
import type { SpendRequest } from '../../src/books/spending/spend-request.ts'
import { newId } from '../../src/core/base/ids.ts'
import { openPostgres } from '../../src/storage/postgres.ts'
import { buildSpend, noon } from '../books/spending/scene.ts'
import type { TreeKey } from './budgets.ts'

const LANES = 32
const DAYS = 4
const DAY_MS = 86_400_000
const CENT = 10_000n

interface Work {
  readonly url: string
  readonly keys: readonly TreeKey[]
  readonly from: number
  readonly spends: number
}

process.once('message', (work) => {
  // Sent by this test's own parent.
  spend(work as Work).catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`)
    process.exit(1)
  })
})

async function spend({ url, keys, from, spends }: Work): Promise<void> {
  const database = await openPostgres({ url, poolSize: 6 })
  const reserve = createReserveQueue(database)
  const byId = new Map(keys.map((key) => [key.id, key]))
  let unsent = 0
  setInterval(() => {
    process.send?.({ decided: unsent })
    unsent = 0
  }, 100)
  const started = from
  let own = 0
  const lane = async () => {
    for (;;) {
      const key = keys[Math.floor(Math.random() * keys.length)]
      if (key === undefined) return
      const day = Math.min(Math.floor(((started + own * 3) / spends) * DAYS), DAYS - 1)
      const request = build(key, byId, new Date(noon.getTime() + day * DAY_MS))
      const { verdict } = await reserve(request)
      own += 1
      unsent += 1
      if (verdict !== 'allow' && verdict !== 'deny') throw new Error(`unexpected ${verdict}`)
      if (verdict === 'allow' && Math.random() < 0.05)
        await releaseSpend(database, { decisionId: request.decisionId, at: request.at })
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
}

function build(key: TreeKey, byId: ReadonlyMap<string, TreeKey>, at: Date): SpendRequest {
  const micros = BigInt(1 + Math.floor(Math.random() * 25)) * CENT
  const { dailyBudget } = key.policy
  const path = key.path.map((id) => {
    const above = byId.get(id)
    if (above === undefined) throw new Error(`no key ${id}`)
    return { id, policyVersion: 1, budgets: budgetRules(above.policy), cooldownSeconds: null }
  })
  return buildSpend({ accountId: key.accountId, keyId: null }, micros, {
    at,
    key: {
      id: key.id,
      policyVersion: 1,
      limits: {
        dailyMaxMicros: toUsdMicros(dailyBudget.max),
        dailyMaxCount: dailyBudget.maxCount ?? null,
        longer: budgetRules(key.policy).filter(({ period }) => period !== 'day'),
      },
      ...(path.length === 0 ? {} : { path }),
    },
    idempotency: { principal: key.id, key: newId('dec', at), fingerprint: 'fingerprint' },
  })
}
