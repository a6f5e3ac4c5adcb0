import { describe, expect, it } from 'vitest'
import { createSandboxRates } from '../../src/providers/rates/sandbox.ts'
import type { Rates } from '../../src/providers/rates.ts'

const now = new Date('2026-11-20T12:00:00.000Z')
const adapters: readonly (readonly [string, () => Rates])[] = [['sandbox', createSandboxRates]]

describe.each(adapters)('rates: %s', (_name, create) => {
  it('answers a dated table with its source', async () => {
    const { source, asOf } = await create().latest(now)
    expect(source).not.toBe('')
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
  it('hold at least 30 currencies beside EUR and are never too old', async () => {
    const { perEuro, asOf } = await createSandboxRates().latest(new Date('2099-01-01T00:00:00Z'))
    expect(perEuro.size).toBeGreaterThanOrEqual(31)
    expect([...perEuro.keys()]).toEqual(expect.arrayContaining(['USD', 'GBP', 'INR']))
    expect(asOf.toISOString()).toBe('2024-06-28T00:00:00.000Z')
  })
})
