/** Cost of a decision alone, without a database. `npx tsx test/bench/policy.ts`, about two seconds. */
import { pathToFileURL } from 'node:url'
import { needsApproval } from '../../policies/approval.ts'
import { budgetViolations, cooldownViolation, ownerViolations } from '../../policies/budget.ts'
import { evaluate } from '../../policies/evaluate.ts'
import { spendPolicy } from '../../policies/policy.ts'
import type { SpendFacts } from '../../policies/spend.ts'

const now = new Date('2026-11-20T12:00:00.000Z')
const payees = Array.from({ length: 50 }, (_, index) => `0x${index.toString(16).padStart(40, '0')}`)

/** Every rule of a policy, with a payee list of typical length. */
const document = {
  perTransaction: { max: '50' },
  dailyBudget: { max: '500', maxCount: 100 },
  categories: { allow: ['transfer', 'x402'] },
  counterparties: { allow: payees, deny: [`0x${'f'.repeat(40)}`], newPayeeCooldownSec: 3600 },
  assets: ['USDC', 'EURC'],
  chains: ['base-sepolia', 'base'],
  timeWindows: [
    { days: ['mon', 'tue', 'wed', 'thu', 'fri'], start: '08:00', end: '18:00', tz: 'Europe/Berlin' },
  ],
  approval: { above: '40' },
  notBefore: '2026-01-01T00:00:00Z',
  expiresAt: '2027-01-01T00:00:00Z',
}

const spend: SpendFacts = {
  category: 'transfer',
  asset: 'USDC',
  usdMicros: 10_000_000n,
  chain: 'base-sepolia',
  counterparty: payees[49] ?? null,
  mcc: null,
  symbol: null,
}

/** Microseconds of one evaluation of every rule, counters included, and of parsing the policy. */
export function benchPolicy(): { evaluationMicros: number; parseMicros: number } {
  const policy = spendPolicy.parse(document)
  const seen = new Date(now.getTime() - 86_400_000)
  const used = { usedMicros: 1n, count: 1 }
  const keys = { day: 1n, week: 1n, month: 1n }
  const decide = () => {
    const broken =
      evaluate(policy, spend, now).length +
      budgetViolations(policy, spend.usdMicros, { day: used, week: used, month: used }, now).length +
      ownerViolations({ day: 1_000_000_000n, week: null, month: null }, spend.usdMicros, keys, now).length +
      (cooldownViolation(policy, spend.counterparty, seen, now) === undefined ? 0 : 1)
    if (broken > 0 || needsApproval(policy, spend.usdMicros))
      throw new Error('the bench expected to be allowed')
  }
  return {
    evaluationMicros: measureMicros(decide, 50_000),
    parseMicros: measureMicros(() => void spendPolicy.parse(document), 2_000),
  }
}

/** The mean of a run, after a warm-up run. */
function measureMicros(work: () => void, times: number): number {
  for (let turn = 0; turn < times; turn += 1) work()
  const start = performance.now()
  for (let turn = 0; turn < times; turn += 1) work()
  return ((performance.now() - start) * 1_000) / times
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { evaluationMicros, parseMicros } = benchPolicy()
  process.stdout.write(
    `a policy with every rule: evaluated in ${evaluationMicros.toFixed(2)} µs, parsed in ${parseMicros.toFixed(1)} µs\n`,
  )
}
