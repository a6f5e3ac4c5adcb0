import { describe, expect, it } from 'vitest'
import { screenSandboxSuffix } from '../../policies/aml/sandbox-suffix.ts'
import { screenAddress } from '../../policies/aml/screen-address.ts'
import { findWorst } from '../../policies/aml/screening.ts'

const listed = '0xAbCd000000000000000000000000000000000001'
const ofac = { name: 'ofac', addresses: new Set([listed.toLowerCase()]) }
const owner = { name: 'owner', addresses: new Set<string>() }

describe('AML rules', () => {
  it('block addresses ending in 9999 and hold those ending in 8888 in the sandbox', () => {
    expect(screenSandboxSuffix(`0x${'0'.repeat(36)}9999`)).toEqual({ result: 'blocked', lists: ['sandbox'] })
    expect(screenSandboxSuffix(`0x${'0'.repeat(36)}8888`)).toEqual({ result: 'review', lists: ['sandbox'] })
    expect(screenSandboxSuffix(`0x${'9999'.repeat(9)}0000`)).toEqual({ result: 'clear', lists: ['sandbox'] })
  })

  it('block a listed address in any case and name the list', () => {
    expect(screenAddress(listed, [ofac, owner])).toEqual({ result: 'blocked', lists: ['ofac'] })
    expect(screenAddress(listed.toUpperCase(), [ofac])).toEqual({ result: 'blocked', lists: ['ofac'] })
  })

  it('name every consulted list when none hit', () => {
    expect(screenAddress('0x1', [ofac, owner])).toEqual({ result: 'clear', lists: ['ofac', 'owner'] })
  })

  it('use the most severe answer', () => {
    const clear = { result: 'clear', lists: ['a'] } as const
    const review = { result: 'review', lists: ['b'] } as const
    const blocked = { result: 'blocked', lists: ['c'] } as const
    expect(findWorst([clear, blocked, review])).toEqual(blocked)
    expect(findWorst([clear, { result: 'clear', lists: ['d'] }])).toEqual({
      result: 'clear',
      lists: ['a', 'd'],
    })
    expect(findWorst([])).toEqual({ result: 'review', lists: [] })
  })
})
