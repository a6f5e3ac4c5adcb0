import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { birthDateError, defaultKycLimits, findMissing, kycLevels, neededLevel } from '../../policies/kyc.ts'

describe('identity levels', () => {
  it.each([
    ['none', 25_000_000_000n, null],
    ['none', 25_000_000_001n, 'basic'],
    ['basic', 250_000_000_000n, null],
    ['basic', 250_000_000_001n, 'full'],
    ['full', 10n ** 18n, null],
    ['none', 10n ** 18n, 'full'],
    ['something else', 25_000_000_001n, 'basic'],
    ['something else', 25_000_000_000n, null],
  ])('%s and %d micros need %s in the sandbox', (level, usdMicros, needed) => {
    expect(neededLevel(defaultKycLimits.sandbox, { level, usdMicros })).toBe(needed)
  })

  it('permit no spend in production without identification', () => {
    const { production } = defaultKycLimits
    expect(neededLevel(production, { level: 'none', usdMicros: 1n })).toBe('basic')
    expect(neededLevel(production, { level: 'basic', usdMicros: 10_000_000_000n })).toBeNull()
    expect(neededLevel(production, { level: 'basic', usdMicros: 10_000_000_001n })).toBe('full')
    expect(neededLevel(production, { level: 'full', usdMicros: 10n ** 18n })).toBeNull()
  })

  it('name the highest when none suffices', () => {
    const limits = { none: 1n, basic: 2n, full: 3n }
    expect(neededLevel(limits, { level: 'none', usdMicros: 4n })).toBe('full')
  })

  it('require personal data from basic on', () => {
    expect(findMissing('basic', new Set())).toEqual(
      ['firstName', 'lastName', 'dateOfBirth', 'country', 'address'].map((member) => `applicant.${member}`),
    )
    expect(findMissing('full', new Set())).toEqual([...findMissing('basic', new Set()), 'documents'])
  })

  it('name a sufficient level, and no lower one suffices', () => {
    fc.assert(
      fc.property(fc.constantFrom(...kycLevels), fc.bigInt(0n, 10n ** 15n), (level, usdMicros) => {
        const limits = defaultKycLimits.sandbox
        const needed = neededLevel(limits, { level, usdMicros })
        if (needed === null) return
        expect(neededLevel(limits, { level: needed, usdMicros })).toBeNull()
        for (const lower of kycLevels.slice(0, kycLevels.indexOf(needed)))
          expect(neededLevel(limits, { level: lower, usdMicros })).not.toBeNull()
      }),
    )
  })

  it('require documents from full on', () => {
    const given = new Set(['firstName', 'lastName', 'dateOfBirth', 'country'])
    expect(findMissing('basic', given)).toEqual(['applicant.address'])
    expect(findMissing('full', given)).toEqual(['applicant.address', 'documents'])
    expect(findMissing('full', new Set([...given, 'address', 'documents']))).toEqual([])
  })
})

it.each([
  ['2190-01-01', 'is in the future'],
  ['2026-11-21', 'is in the future'],
  ['2026-11-20', 'must be 18 years ago or more'],
  ['2008-11-21', 'must be 18 years ago or more'],
  ['2008-11-20', undefined],
  ['1895-11-21', undefined],
  ['1895-11-20', 'must not be more than 130 years ago'],
  ['0001-01-01', 'must not be more than 130 years ago'],
])('reject a birth date of %s, when that %s', (born, misfit) => {
  expect(birthDateError(born, new Date('2026-11-20T12:00:00Z'))).toBe(misfit)
})
