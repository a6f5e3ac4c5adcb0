import { describe, expect, it } from 'vitest'
import { Failure } from '../../src/core/failures/failure.ts'
import { asUnavailable, isConnectionLost } from '../../src/storage/unavailable.ts'

const withCode = (code: string) => Object.assign(new Error('no'), { code })

describe('a database error', () => {
  it.each([
    ['a full disk', '53100'],
    ['a full memory', '53200'],
    ['too many connections', '53300'],
    ['a lock that did not come', '55P03'],
    ['a statement that took too long', '57014'],
    ['a restart', '57P01'],
  ])('is retryable: %s', (_what, code) => {
    const failure = asUnavailable(withCode(code))
    expect(failure).toBeInstanceOf(Failure)
    expect(failure).toMatchObject({ code: 'provider_unavailable', members: { retryAfter: 1 } })
  })

  it.each([
    ...['ECONNRESET', 'EPIPE', 'ENETDOWN', 'ECONNABORTED', 'EPROTO', 'EAI_AGAIN', 'ENOTFOUND', 'EIO'],
    ...['ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC', 'ERR_STREAM_DESTROYED', 'ERR_SOCKET_CLOSED', '08006'],
  ])('leaves the outcome unknown, and ends the session: %s', (code) => {
    expect(asUnavailable(withCode(code))).toBeInstanceOf(Failure)
    expect(isConnectionLost(withCode(code))).toBe(true)
  })

  it.each(['23505', 'P0001', 'XX000', 'ERR_INVALID_ARG_TYPE'])('is passed through: %s', (code) => {
    expect(asUnavailable(withCode(code))).toMatchObject({ code })
    expect(isConnectionLost(withCode(code))).toBe(false)
  })

  it('is passed through when a statement is wrong', () => {
    const wrong = withCode('42601')
    expect(asUnavailable(wrong)).toBe(wrong)
  })

  it('is an ended session, when the server closes one that idles in a transaction', () => {
    expect(isConnectionLost(withCode('25P03'))).toBe(true)
    expect(isConnectionLost(withCode('53100'))).toBe(false)
  })
})
