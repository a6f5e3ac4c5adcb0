import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Failure } from '../../../../src/core/failures/failure.ts'
import type { Rates } from '../../../../src/providers/rates/port.ts'
import { quoteFx } from '../../../../src/rails/selling/payments/fx-quote.ts'

const now = new Date('2026-11-20T12:00:00.000Z')
const buildRates = (perEuro: Record<string, string>): Rates => ({
  latest: async () => ({
    source: 'test',
    asOf: new Date('2026-11-19T00:00:00Z'),
    perEuro: new Map(Object.entries({ EUR: '1', ...perEuro })),
  }),
})
const rates = buildRates({ USD: '1.25', GBP: '0.8', JPY: '160.5', INR: '100', XAU: '0.0004' })

const quote = (from: string, to: string, amount: string, spreadBps = 0) =>
  quoteFx({ rates, spreadBps }, { from, to, amount }, now)

const catchRefusal = async (attempt: Promise<unknown>) => {
  const thrown: unknown = await attempt.then(
    () => undefined,
    (error) => error,
  )
  if (!(thrown instanceof Failure)) throw new Error('no failure', { cause: thrown })
  return thrown
}

describe('quoteFx', () => {
  it('deducts the spread from the rate, and multiplies the amount by the stated rate', async () => {
    expect(await quoteFx({ rates }, { from: 'EUR', to: 'USD', amount: '100.00' }, now)).toEqual({
      from: 'EUR',
      to: 'USD',
      amount: '100',
      rate: '1.246875',
      result: '124.68',
      spreadBps: 25,
      source: 'test',
      asOf: '2026-11-19T00:00:00.000Z',
      ageSec: 129_600,
      expiresAt: '2026-11-20T12:01:00.000Z',
    })
  })

  it('crosses through EUR and truncates the rate after ten digits', async () => {
    expect(await quote('USD', 'GBP', '10')).toMatchObject({ rate: '0.64', result: '6.4' })
    expect(await quote('JPY', 'USD', '1000')).toMatchObject({ rate: '0.0077881619', result: '7.78' })
  })

  it('rounds down to the target’s precision', async () => {
    expect(await quote('EUR', 'JPY', '1.99')).toMatchObject({ result: '319' })
    expect(await quote('USD', 'EURC', '0.01')).toMatchObject({ result: '0.008' })
    expect(await quote('EUR', 'INR', '0.99')).toMatchObject({ result: '99' })
  })

  it('prices a stablecoin as its currency', async () => {
    expect(await quote('USDC', 'USD', '1.234567')).toMatchObject({ rate: '1', result: '1.23' })
    expect(await quote('EURC', 'PYUSD', '2')).toMatchObject({ rate: '1.25', result: '2.5' })
    expect(await quote('USDT', 'USDC', '5', 25)).toMatchObject({ rate: '0.9975', result: '4.9875' })
  })

  it.each([
    ['USD', 'ABC'],
    ['usd', 'EUR'],
    ['USD', 'USD'],
    ['USD', 'XAU'],
    ['toString', 'USD'],
  ])('rejects the unknown pair %s to %s, and lists the known currencies', async (from, to) => {
    const { code, message, members } = await catchRefusal(quote(from, to, '1'))
    expect(code).toBe('pair_not_supported')
    expect(message).toContain(`${from} to ${to}`)
    expect(members.hint).toContain('EUR, EURC, GBP, INR, JPY, PYUSD, USD, USDC, USDT')
  })

  it('rejects a currency that the table lacks', async () => {
    const attempt = quoteFx({ rates: buildRates({}) }, { from: 'EUR', to: 'USDC', amount: '1' }, now)
    expect(await catchRefusal(attempt)).toMatchObject({ code: 'pair_not_supported' })
  })

  it.each([
    ['USD', 'EUR', '1.001', 'USD has 2'],
    ['JPY', 'EUR', '1.5', 'JPY has 0'],
    ['USD', 'EUR', '1e3', 'not a plain decimal'],
    ['JPY', 'USD', '1', 'smallest unit of USD'],
  ])('rejects %s to %s of %s', async (from, to, amount, text) => {
    const { code, message, members } = await catchRefusal(quote(from, to, amount))
    expect(code).toBe('invalid_request')
    expect(message).toContain(text)
    expect(members.issues).toEqual([{ path: 'amount', message: expect.any(String) }])
  })

  it('propagates a lack of rates', async () => {
    const none: Rates = { latest: () => Promise.reject(new Failure('rates_unavailable', 'Too old.')) }
    const attempt = quoteFx({ rates: none }, { from: 'EUR', to: 'USD', amount: '1' }, now)
    expect(await catchRefusal(attempt)).toMatchObject({ code: 'rates_unavailable' })
  })

  it('never gains money on a round trip', async () => {
    const codes = fc.constantFrom('EUR', 'USD', 'GBP', 'JPY', 'INR', 'USDC', 'EURC')
    await fc.assert(
      fc.asyncProperty(codes, codes, fc.integer({ min: 1000, max: 10 ** 9 }), async (from, to, whole) => {
        fc.pre(from !== to)
        const there = await quote(from, to, String(whole))
        const back = await quote(to, from, there.result)
        expect(Number(back.result)).toBeLessThanOrEqual(whole)
      }),
    )
  })
})
