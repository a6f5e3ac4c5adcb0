import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { silentLog } from '../../src/core/base/log.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { moneyOf } from '../../src/core/money/money.ts'
import type { RateTable } from '../../src/core/money/rate-table.ts'
import { createEcbRates, parseEcb } from '../../src/providers/rates/ecb.ts'
import { createKeptRates } from '../../src/providers/rates/kept.ts'
import { type KeptRates, type Rates, valueInUsd } from '../../src/providers/rates/port.ts'
import { createSandboxRates } from '../../src/providers/rates/sandbox.ts'
import { onBothEngines } from '../engines.ts'
import { ecbDocument, type Feed, published, startFeed } from './ecb-feed.ts'

const now = new Date('2026-11-20T12:00:00.000Z')
const later = (hours: number) => new Date(now.getTime() + hours * 60 * 60 * 1000)

let shared: Feed
beforeAll(async () => {
  shared = await startFeed(ecbDocument('2026-11-19'))
})
afterAll(() => shared.close())

const adapters: readonly (readonly [string, () => Rates])[] = [
  ['sandbox', createSandboxRates],
  ['ecb', () => createEcbRates({ url: shared.url, log: silentLog })],
]

describe.each(adapters)('rates: %s', (_name, create) => {
  it('returns a dated table with its source', async () => {
    const { source, asOf } = await create().latest(now)
    expect(source).toContain('ECB')
    expect(asOf.getTime()).toBeLessThanOrEqual(now.getTime())
  })

  it('maps ISO 4217 codes to positive decimal strings, EUR to 1', async () => {
    const { perEuro } = await create().latest(now)
    expect(perEuro.get('EUR')).toBe('1')
    for (const [code, rate] of perEuro) {
      expect(code).toMatch(/^[A-Z]{3}$/)
      expect(rate).toMatch(/^(0|[1-9]\d*)(\.\d+)?$/)
      expect(rate).toMatch(/[1-9]/)
    }
  })
})

describe('sandbox rates', () => {
  it('include at least 30 currencies beside EUR and never expire', async () => {
    const { perEuro, asOf } = await createSandboxRates().latest(new Date('2099-01-01T00:00:00Z'))
    expect(perEuro.size).toBeGreaterThanOrEqual(31)
    expect([...perEuro.keys()]).toEqual(expect.arrayContaining(['USD', 'GBP', 'INR']))
    expect(asOf.toISOString()).toBe('2099-01-01T00:00:00.000Z')
  })

  it('start at the publication and walk from it, alike on every machine', async () => {
    const at = async (day: string) => createSandboxRates().latest(new Date(`${day}T15:00:00Z`))
    expect((await at('2024-06-28')).perEuro.get('USD')).toBe('1.0705')
    expect((await at('2020-01-01')).perEuro.get('USD')).toBe('1.0705')
    const [friday, saturday, sunday, monday] = await Promise.all(
      ['2026-11-20', '2026-11-21', '2026-11-22', '2026-11-23'].map(at),
    )
    expect(friday).toEqual(await at('2026-11-20'))
    expect([saturday, sunday]).toEqual([friday, friday])
    expect(monday?.perEuro.get('USD')).not.toBe(friday?.perEuro.get('USD'))
    expect(monday?.source).toContain('Generated for the sandbox')
  })

  it('stay within nine percent of the publication, and within two from day to day', async () => {
    const rates = createSandboxRates()
    let before = 1.0705
    for (let day = 0; day < 1_500; day += 1) {
      const now = new Date(Date.parse('2024-06-28T12:00:00Z') + day * 86_400_000)
      const usd = Number((await rates.latest(now)).perEuro.get('USD'))
      expect(Math.abs(usd / 1.0705 - 1)).toBeLessThan(0.09)
      expect(Math.abs(usd / before - 1)).toBeLessThan(0.02)
      before = usd
    }
  })
})

describe('ECB rates', () => {
  let feed: Feed
  const open = async (day = '2026-11-19') => {
    feed = await startFeed(ecbDocument(day))
    return createEcbRates({ url: feed.url, log: silentLog }, { timeoutMs: 300 })
  }
  const refused = expect.objectContaining({
    code: 'rates_unavailable',
    members: expect.objectContaining({ retryAfter: 30 }),
  })
  afterEach(() => feed?.close())

  it.each([
    ['a future day', ecbDocument('2099-01-01')],
    ['a dollar at a hundredth', ecbDocument('2026-11-20', { ...published, USD: '0.0107' })],
    ['a rupee at a million', ecbDocument('2026-11-20', { ...published, INR: '1000000' })],
    ['a pound that moved by a quarter', ecbDocument('2026-11-20', { ...published, GBP: '1.06' })],
    ['no pound', ecbDocument('2026-11-20').replace(/.*'GBP'.*\n/, '')],
    ['thirty digits', ecbDocument('2026-11-20', { ...published, JPY: '1'.repeat(30) })],
  ])('rejects a publication with %s, and keeps the last one', async (_what, document) => {
    const rates = await open()
    await rates.latest(now)
    feed.answer = { status: 200, body: document }
    const { asOf, perEuro } = await rates.latest(later(2))
    expect([asOf.toISOString().slice(0, 10), perEuro.get('USD'), perEuro.get('GBP')]).toEqual([
      '2026-11-19',
      published.USD,
      published.GBP,
    ])
    await expect(rates.latest(later(24 * 7))).rejects.toEqual(refused)
  })

  it('has no rates when the first publication is dated in the future', async () => {
    await expect((await open('2099-01-01')).latest(now)).rejects.toEqual(refused)
  })

  it('equal the published ones, to the digit, with the published day', async () => {
    const { source, asOf, perEuro } = await (await open()).latest(now)
    expect(source).toBe('ECB euro reference rates of 2026-11-19')
    expect(asOf.toISOString()).toBe('2026-11-19T00:00:00.000Z')
    expect(Object.fromEntries(perEuro)).toEqual({ EUR: '1', ...published })
  })

  it('are fetched once an hour, regardless of the number of callers', async () => {
    const rates = await open()
    await Promise.all(Array.from({ length: 10 }, () => rates.latest(now)))
    await rates.latest(later(0.99))
    expect(feed.requestCount()).toBe(1)
    feed.answer = { status: 200, body: ecbDocument('2026-11-20', { ...published, USD: '1.1000' }) }
    expect((await rates.latest(later(1))).perEuro.get('USD')).toBe('1.1000')
    expect(feed.requestCount()).toBe(2)
  })

  it('remain available during an outage until they expire, and again after it', async () => {
    const rates = await open()
    await rates.latest(now)
    feed.answer = { status: 503, body: 'maintenance' }
    await expect(rates.latest(later(100))).resolves.toMatchObject({
      asOf: new Date('2026-11-19T00:00:00.000Z'),
    })
    await expect(rates.latest(later(5 * 24 + 13))).rejects.toEqual(refused)
    feed.answer = { status: 200, body: ecbDocument('2026-11-25') }
    await expect(rates.latest(later(5 * 24 + 14))).resolves.toMatchObject({
      asOf: new Date('2026-11-25T00:00:00.000Z'),
    })
  })

  it('are never replaced by older ones', async () => {
    const rates = await open()
    await rates.latest(now)
    feed.answer = { status: 200, body: ecbDocument('2026-11-18') }
    await expect(rates.latest(later(2))).resolves.toMatchObject({
      asOf: new Date('2026-11-19T00:00:00.000Z'),
    })
  })

  it('are unavailable when the publication itself is stale', async () => {
    await expect((await open('2026-11-13')).latest(now)).rejects.toEqual(refused)
  })

  it('are unavailable, soon, when nothing answers', async () => {
    const rates = await open()
    feed.answer = 'nothing'
    await expect(rates.latest(now)).rejects.toEqual(refused)
    expect(feed.requestCount()).toBe(1)
    await expect(rates.latest(now)).rejects.toEqual(refused)
    expect(feed.requestCount()).toBe(1)
  })

  it.each([
    ['a page', '<html><body>Sorry</body></html>'],
    ['two days', ecbDocument('2026-11-19') + ecbDocument('2026-11-18')],
    ['an invalid day', ecbDocument('2026-13-19')],
    ['few currencies', ecbDocument('2026-11-19', { USD: '1.1' })],
    ['a non-numeric rate', ecbDocument('2026-11-19', { ...published, USD: 'N/A' })],
    ['a rate of zero', ecbDocument('2026-11-19', { ...published, USD: '0.000' })],
    ['a rate with an exponent', ecbDocument('2026-11-19', { ...published, USD: '1e3' })],
    ['a currency twice', ecbDocument('2026-11-19').replace("'JPY'", "'USD'")],
  ])('are not read from a document with %s', (_what, xml) => {
    expect(() => parseEcb(xml)).toThrow('the publication')
  })
})

describe('ECB rates and a restart', () => {
  const keepIn = (table: { now: RateTable | null }): KeptRates => ({
    load: async () => table.now,
    save: async (newest) => {
      table.now = newest
    },
  })

  it('are the kept publication while the feed is down, until it is too old', async () => {
    const table: { now: RateTable | null } = { now: null }
    const feed = await startFeed(ecbDocument('2026-11-19'))
    const open = () =>
      createEcbRates({ url: feed.url, log: silentLog, kept: keepIn(table) }, { timeoutMs: 300 })
    const before = await open().latest(now)
    await feed.close()
    expect((await open().latest(later(1))).perEuro).toEqual(before.perEuro)
    await expect(open().latest(later(24 * 7))).rejects.toMatchObject({ code: 'rates_unavailable' })
  })

  it('do without the kept publication when the database does not answer', async () => {
    const down = () => Promise.reject(new Error('the database is down'))
    const rates = createEcbRates({ url: shared.url, log: silentLog, kept: { load: down, save: down } })
    expect((await rates.latest(now)).perEuro.get('EUR')).toBe('1')
  })
})

onBothEngines('the kept publication', (database) => {
  it('is the newest that any gateway has seen', async () => {
    const kept = createKeptRates(database(), 'https://rates.example')
    expect(await kept.load()).toBeNull()
    const of = (day: string, usd: string): RateTable => ({
      source: `of ${day}`,
      asOf: new Date(day),
      perEuro: new Map([
        ['EUR', '1'],
        ['USD', usd],
      ]),
    })
    await kept.save(of('2026-11-19', '1.07'), now)
    await kept.save(of('2026-11-18', '1.06'), now)
    expect(await kept.load()).toEqual(of('2026-11-19', '1.07'))
    await kept.save(of('2026-11-20', '1.08'), now)
    expect(await kept.load()).toEqual(of('2026-11-20', '1.08'))
  })
})

describe('dollars without a table', () => {
  const none: Rates = {
    latest: async () => {
      throw new Failure('rates_unavailable', 'There is none.')
    },
  }

  it('count as dollars, at par', async () => {
    for (const asset of ['USD', 'USDC', 'USDT', 'PYUSD'] as const)
      expect(await valueInUsd(none, moneyOf(asset, '12.5'), now)).toEqual({
        usdMicros: 12_500_000n,
        rate: '1',
      })
    for (const asset of ['EURC', 'EUR', 'GBP'] as const)
      await expect(valueInUsd(none, moneyOf(asset, '12.5'), now)).rejects.toMatchObject({
        code: 'rates_unavailable',
      })
  })
})
