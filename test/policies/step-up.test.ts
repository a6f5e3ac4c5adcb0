import { describe, expect, it } from 'vitest'
import { judgeRecentProof, judgeStepUp } from '../../policies/step-up.ts'

const now = new Date('2026-11-20T12:00:00.000Z')
const ago = (seconds: number) => new Date(now.getTime() - seconds * 1000)
const facts = { mode: 'production', mfaEnrolled: true, steppedUpAt: null, now } as const

describe('stepping up', () => {
  it('is valid for five minutes if a second factor is enrolled', () => {
    expect(judgeStepUp(facts)).toBe('stale')
    expect(judgeStepUp({ ...facts, steppedUpAt: ago(0) })).toBe('fresh')
    expect(judgeStepUp({ ...facts, steppedUpAt: ago(299) })).toBe('fresh')
    expect(judgeStepUp({ ...facts, steppedUpAt: ago(300) })).toBe('stale')
    expect(judgeStepUp({ ...facts, steppedUpAt: ago(-1) })).toBe('stale')
  })

  it('requires enrollment in production, and none in the sandbox', () => {
    expect(judgeStepUp({ ...facts, mfaEnrolled: false })).toBe('enroll')
    expect(judgeStepUp({ ...facts, mfaEnrolled: false, mode: 'sandbox' })).toBe('fresh')
    expect(judgeStepUp({ ...facts, mode: 'sandbox' })).toBe('stale')
  })
})

describe('a recent proof', () => {
  const bare = { ...facts, mfaEnrolled: false }

  it('is a sign-in of the last five minutes, in production without a second factor', () => {
    expect(judgeRecentProof({ ...bare, signedInAt: ago(299) })).toBe('fresh')
    expect(judgeRecentProof({ ...bare, signedInAt: ago(300) })).toBe('stale')
    expect(judgeRecentProof({ ...bare, mode: 'sandbox', signedInAt: ago(9000) })).toBe('fresh')
    expect(judgeRecentProof({ ...bare, signedInAt: null })).toBe('stale')
  })

  it('is the second factor if one is enrolled, however recent the sign-in', () => {
    expect(judgeRecentProof({ ...facts, signedInAt: ago(1) })).toBe('stale')
    expect(judgeRecentProof({ ...facts, steppedUpAt: ago(1), signedInAt: ago(9000) })).toBe('fresh')
  })
})
