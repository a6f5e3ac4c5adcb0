/** Health gauges of a deployment, on both engines: pending work, differences, and unreadable parts. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createSimulatedChain } from '../../../src/chain/simulated/simulated.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import type { Chain } from '../../../src/providers/chain/port.ts'
import type { Gauge } from '../../../src/providers/metrics/port.ts'
import { readGauges } from '../../../src/records/gauges/read-gauges.ts'
import { onBothEngines } from '../../engines.ts'
import { buildKeyPrincipal, newPerson, noon } from '../../kernel/scene.ts'

const later = new Date(noon.getTime() + 90_000)

function findFigure(gauges: readonly Gauge[], name: string, labels: Record<string, string> = {}) {
  return gauges.find(
    (gauge) =>
      gauge.name === name && Object.entries(labels).every(([key, value]) => gauge.labels[key] === value),
  )?.value
}

onBothEngines('the gauges', (database) => {
  let chain: Chain
  beforeAll(async () => {
    chain = await createSimulatedChain({ clock: () => noon, log: silentLog })
  })
  afterAll(() => chain.close())
  const read = (parts: Partial<Parameters<typeof readGauges>[0]> = {}) =>
    readGauges({
      database: database(),
      chains: { all: [chain], absent: [] },
      clock: () => later,
      settings: { anchorChain: null },
      ...parts,
    })

  it('are all present while nothing is pending and nothing differs', async () => {
    const gauges = await read()
    for (const kind of [
      'transfers',
      'relays',
      'payments',
      'holds',
      'orders',
      'approvals',
      'webhooks',
      'debts',
      'settlements',
    ])
      expect([kind, findFigure(gauges, 'open', { kind })]).toEqual([kind, 0])
    for (const asset of ['USDC', 'USDT', 'EURC', 'PYUSD'])
      expect(findFigure(gauges, 'ledger_drift', { asset, chain: 'base-sepolia' })).toBe(0)
    expect(findFigure(gauges, 'up', { part: 'database' })).toBe(1)
    expect(findFigure(gauges, 'up', { part: 'chain' })).toBe(1)
    expect(findFigure(gauges, 'chain_block_age_seconds', { chain: 'base-sepolia' })).toBe(90)
    expect(findFigure(gauges, 'database_connections', { state: 'waiting' })).toBe(0)
  })

  it('tell how long ago the last anchored day ended', async () => {
    const readAge = async (changes = {}) => findFigure(await read(changes), 'anchor_age_seconds')
    const settings = { anchorChain: 'base-sepolia' } as const
    const day = (before: number) => new Date(noon.getTime() - before * 86_400_000).toISOString().slice(0, 10)
    const insert = (before: number, state: 'prepared' | 'confirmed') =>
      database()
        .kysely.insertInto('decision_anchor')
        .values({
          ...{
            day: day(before),
            sequence: 1n,
            hash: '0'.repeat(64),
            chain: 'base-sepolia',
            state,
            prepared_at: noon,
          },
          ...(state === 'confirmed' ? { transaction_hash: '0x1', confirmed_at: noon } : {}),
        })
        .execute()
    expect(await readAge({ settings })).toBe(0)
    await insert(4, 'prepared')
    const midnight = Date.parse(`${day(0)}T00:00:00Z`)
    const since = (midnightsBefore: number) => (later.getTime() - midnight) / 1_000 + midnightsBefore * 86_400
    expect(await readAge({ settings })).toBe(since(4))
    await insert(3, 'confirmed')
    await insert(1, 'prepared')
    expect(await readAge({ settings })).toBe(since(2))
    expect(await readAge()).toBeUndefined()
  })

  it('count pending work, and report the difference of ledger and chain in whole coins', async () => {
    const person = await newPerson(database())
    const { key } = buildKeyPrincipal(person.account)
    const { kysely } = database()
    await kysely
      .insertInto('card_early')
      .values({ webhook_id: 'wh_1', processor_token: 't', message: '{}', received_at: noon })
      .execute()
    const drifts = [
      { chain: 'base-sepolia', token: 'USDC', booked: 3_500_000n, on_chain: 1_000_000n },
      { chain: 'arbitrum-sepolia', token: 'USDC', booked: 7n, on_chain: 0n },
      { chain: 'base-sepolia', token: 'EURC', booked: 1n, on_chain: 2n },
    ]
    for (const drift of drifts)
      await kysely
        .insertInto('wallet_drift')
        .values({ account_id: person.account.id, ...drift, first_seen_at: noon, last_seen_at: noon })
        .execute()
    const gauges = await read()
    expect(findFigure(gauges, 'open', { kind: 'webhooks' })).toBe(1)
    expect(findFigure(gauges, 'ledger_drift', { asset: 'USDC', chain: 'base-sepolia' })).toBe(2.5)
    expect(findFigure(gauges, 'ledger_drift', { asset: 'EURC', chain: 'base-sepolia' })).toBe(0.000001)
    expect(findFigure(gauges, 'ledger_drift_wallets', { asset: 'USDC', chain: 'base-sepolia' })).toBe(1)
    expect(findFigure(gauges, 'ledger_drift_wallets', { asset: 'USDT', chain: 'base-sepolia' })).toBe(0)
    // Gauges do not expose account ids.
    for (const private_ of [person.account.id, key.id]) expect(JSON.stringify(gauges)).not.toContain(private_)
  })

  it('omit unreadable parts, and report them', async () => {
    const { connections } = database()
    const broken = { connections, call: () => Promise.reject(new Error('gone')) }
    const gauges = await read({ database: broken })
    expect(findFigure(gauges, 'up', { part: 'database' })).toBe(0)
    expect(findFigure(gauges, 'up', { part: 'chain' })).toBe(1)
    expect(gauges.some(({ name }) => name === 'open' || name === 'ledger_drift')).toBe(false)
    expect(findFigure(gauges, 'chain_block_age_seconds', { chain: 'base-sepolia' })).toBe(90)
  })

  it('wait at most two seconds for a part that does not answer', async () => {
    const startedAt = performance.now()
    const silent = { name: 'arbitrum-sepolia', latestBlockAt: () => new Promise<never>(() => {}) } as const
    const gauges = await read({
      chains: { all: [{ ...silent, name: 'base-sepolia' }, chain, silent], absent: ['polygon'] },
    })
    expect(performance.now() - startedAt).toBeLessThan(4_000)
    expect(findFigure(gauges, 'up', { part: 'chain' })).toBe(0)
    expect(findFigure(gauges, 'up', { part: 'database' })).toBe(1)
  })
})
