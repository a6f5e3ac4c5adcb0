import { expect, it } from 'vitest'
import { observedReserve } from '../../../src/books/spending/observed-reserve.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { type CountedDecision, noMetrics } from '../../../src/providers/metrics/port.ts'
import { type Attributes, noTracing } from '../../../src/providers/tracing/port.ts'
import { onBothEngines } from '../../engines.ts'
import { buildSpend, openAccount, openKey, unlimited } from './scene.ts'

onBothEngines('a watched reserve', (database) => {
  it('returns the same verdicts, and counts each decision with its rules, and no repeats', async () => {
    const counted: CountedDecision[] = []
    const recorded: Attributes[] = []
    const reserve = observedReserve((request) => reserveSpend(database(), request), {
      metrics: { ...noMetrics, decision: (decision) => void counted.push(decision) },
      tracing: {
        span: (name, attributes, work) => {
          recorded.push({ name, ...attributes })
          return noTracing.span(name, attributes, work)
        },
        note: (attributes) => void recorded.push(attributes),
      },
    })
    const accountId = await openAccount(database(), 100n)
    const keyId = await openKey(database(), accountId)
    const scene = { accountId, keyId, limits: { ...unlimited, dailyMaxMicros: 10n } }
    const idempotency = { principal: keyId, key: 'a', fingerprint: 'same' }
    const denied = buildSpend(scene, 11n, { idempotency })
    expect(await reserve(buildSpend(scene, 10n))).toMatchObject({ verdict: 'allow' })
    expect(await reserve(denied)).toMatchObject({ verdict: 'deny', replayed: false })
    expect(await reserve(buildSpend(scene, 11n, { idempotency }))).toMatchObject({
      verdict: 'deny',
      decisionId: denied.decisionId,
      replayed: true,
    })
    expect(counted).toEqual([
      { path: 'operation', verdict: 'allow', rules: [] },
      { path: 'operation', verdict: 'deny', rules: ['daily_budget'] },
      { path: 'operation', verdict: 'repeated', rules: [] },
    ])
    const step = { name: 'spend reserve', 'bursar.operation': 'wallets.transfer' }
    expect(recorded).toEqual([
      step,
      { 'bursar.verdict': 'allow' },
      step,
      { 'bursar.verdict': 'deny' },
      step,
      { 'bursar.verdict': 'repeated' },
    ])
  })
})
