import { describe, expect, it } from 'vitest'
import { Failure } from '../../../src/core/failures/failure.ts'
import {
  loggablePath,
  refuseQueryCredentials,
  withoutCredentials,
} from '../../../src/server/http/query-credentials.ts'

const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln'
const payment = Buffer.from(JSON.stringify({ x402Version: 1, payload: {} })).toString('base64')

function catchRefusal(target: string): Failure | undefined {
  try {
    refuseQueryCredentials(target)
    return undefined
  } catch (error) {
    if (error instanceof Failure) return error
    throw error
  }
}

describe('a credential in the query', () => {
  it.each([
    'token',
    'access_token',
    'api_key',
    'apikey',
    'key',
    'signature',
    'session',
    'authorization',
    'x-payment',
    'ToKeN',
    'API-Key',
    'payment-signature',
    'client_secret',
    'bursar_session',
    'x-api-key',
    'auth_token',
    'jwt',
    'cookie',
    'recoveryCode',
    'session_id',
    'sid',
    'sig',
    'signature_input',
    'code',
    'totp',
    'otp',
    'privateKey',
    'token[]',
    'token%20',
    'bsk_sandbox_abc',
    jwt,
  ])('is rejected by the name %s, on any path, even without a value', (name) => {
    for (const target of [`/api/wallets?${name}=x`, `/?a=1&${name}=`, `/nowhere?${name}`, `/mcp?a&${name}=x`])
      expect(catchRefusal(target)?.code).toBe('credential_in_query')
  })

  it('is allowed as the code with which an identity provider returns a person', () => {
    expect(catchRefusal('/sign-in/google?code=x&state=y')).toBe(undefined)
    expect(catchRefusal('/sign-in/google?token=x&state=y')?.code).toBe('credential_in_query')
    expect(catchRefusal('/api/auth/google?code=x')?.code).toBe('credential_in_query')
  })

  it('is rejected by a percent-encoded name', () => {
    expect(catchRefusal('/?%74oken=x')?.code).toBe('credential_in_query')
    expect(catchRefusal('/?api%5Fkey=x')?.code).toBe('credential_in_query')
  })

  it.each([
    ['an API key', 'bsk_sandbox_abc'],
    ['a live API key', 'bsk_live_abc'],
    ['a session token', jwt],
    ['an unsigned token', 'eyJhbGciOiJub25lIn0.e30.'],
    ['an x402 payment', payment],
    ['an API key behind a space', '%20bsk_sandbox_abc'],
    ['an encoded API key', '%62sk_sandbox_abc'],
    ['an API key with its scheme', 'Bearer%20bsk_sandbox_abc'],
    ['a cookie', `bursar_session%3D${jwt}`],
    ['a link that holds one', `%2Fnext%3Ft%3D${jwt}`],
  ])('is rejected by the shape of %s', (_name, value) => {
    expect(catchRefusal(`/api/x402/fx?from=USD&q=${value}`)?.code).toBe('credential_in_query')
  })

  it('is never repeated in the answer', () => {
    const problem = JSON.stringify(catchRefusal('/?q=bsk_sandbox_secretsecret')?.toProblem())
    expect(problem).toContain('\\"q\\"')
    expect(problem).not.toContain('secretsecret')
    const named = JSON.stringify(catchRefusal('/?bsk_sandbox_secretsecret=1')?.toProblem())
    expect(named).not.toContain('secretsecret')
  })

  it('is redacted from paths in logs and problems', () => {
    expect(withoutCredentials(`/a/bsk_live_secret-x/b/${jwt}`)).toBe('/a/[credential]/b/[credential]')
    expect(withoutCredentials('/api/wallets/transfer')).toBe('/api/wallets/transfer')
  })

  it.each([
    '/api/x402/fx?from=USD&to=EUR&amount=1',
    '/sign-in/apple?code=abc&state=xyz',
    '/?asset=USDC&cursor=x',
    '/',
    '/?',
    '/a?b',
  ])('is not detected in %s', (target) => {
    expect(catchRefusal(target)).toBeUndefined()
  })
})

describe('a logged path', () => {
  it('has no code with which another browser or owner could decide', () => {
    for (const [path, logged] of [
      ['/oauth/consent/abc-123', '/oauth/consent/[interaction]'],
      ['/oauth/authorize/abc-123', '/oauth/authorize/[interaction]'],
      ['/agents/connect/abc-123', '/agents/connect/[code]'],
      ['/api/agents/registrations/abc-123', '/api/agents/registrations/[code]'],
      ['/api/agents/registrations/abc-123/outcome', '/api/agents/registrations/[code]/outcome'],
      ['/api/agents/keys/key_1', '/api/agents/keys/key_1'],
    ] as const)
      expect(loggablePath(path)).toBe(logged)
  })
})
