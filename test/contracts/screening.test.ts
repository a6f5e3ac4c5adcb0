import { describe, expect, it } from 'vitest'
import { screenSandboxSuffix } from '../../policies/aml/sandbox-suffix.ts'
import { screenAddress } from '../../policies/aml/screen-address.ts'
import { worstOf } from '../../policies/aml/screening.ts'
import { createSandboxScreening } from '../../src/providers/screening/sandbox.ts'

const listed = `0x${'ab'.repeat(20)}` as const
const lists = [{ name: 'ofac', addresses: new Set([listed]) }]

describe('screening: sandbox', () => {
  const screening = createSandboxScreening((address) =>
    worstOf([screenSandboxSuffix(address), screenAddress(address, lists)]),
  )

  it('answers as the rules do that it was given', async () => {
    expect(await screening.screen(`0x${'0'.repeat(36)}9999`)).toEqual({
      result: 'blocked',
      lists: ['sandbox'],
    })
    expect(await screening.screen(`0x${'0'.repeat(36)}8888`)).toEqual({
      result: 'review',
      lists: ['sandbox'],
    })
    expect(await screening.screen(listed)).toEqual({ result: 'blocked', lists: ['ofac'] })
    expect(await screening.screen(`0x${'1'.repeat(40)}`)).toEqual({
      result: 'clear',
      lists: ['sandbox', 'ofac'],
    })
  })
})
