import { generateKeyPairSync } from 'node:crypto'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import { describe, expect, it } from 'vitest'
import { createFacilitatorHeaders } from '../../../../src/rails/selling/x402/facilitator-token.ts'
import { noon } from '../../../kernel/scene.ts'

const url = 'https://api.cdp.example/platform/v2/x402'

describe('tokens for a facilitator', () => {
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ed = generateKeyPairSync('ed25519')
  const { d = '', x = '' } = ed.privateKey.export({ format: 'jwk' })
  const raw = Buffer.concat([Buffer.from(d, 'base64url'), Buffer.from(x, 'base64url')]).toString('base64')
  it.each([
    ['ES256', ec.privateKey.export({ type: 'sec1', format: 'pem' }).toString(), ec.publicKey],
    ['EdDSA', raw, ed.publicKey],
  ])(
    'name method, host and path, last two minutes and are signed with %s',
    async (alg, secret, publicKey) => {
      const createHeaders = createFacilitatorHeaders(
        { id: 'organizations/1/apiKeys/2', secret },
        url,
        () => noon,
      )
      const { verify, settle, supported } = await createHeaders()
      const requests = [
        ['POST', 'verify', verify],
        ['POST', 'settle', settle],
        ['GET', 'supported', supported],
      ] as const
      for (const [method, path, { authorization }] of requests) {
        const token = authorization.replace('Bearer ', '')
        const { payload } = await jwtVerify(token, publicKey, { algorithms: [alg], currentDate: noon })
        const uri = `${method} api.cdp.example/platform/v2/x402/${path}`
        expect(payload).toMatchObject({ iss: 'cdp', sub: 'organizations/1/apiKeys/2', uri, uris: [uri] })
        expect((payload.exp ?? 0) - (payload.nbf ?? 0)).toBe(120)
        expect(decodeProtectedHeader(token)).toMatchObject({
          alg,
          kid: 'organizations/1/apiKeys/2',
          typ: 'JWT',
        })
      }
      expect((await createHeaders()).verify).not.toEqual(verify)
    },
  )

  it.each([
    ['another curve', generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey],
    ['an RSA key', generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey],
  ])('refuse %s', (_name, key) => {
    const secret = key.export({ type: 'pkcs8', format: 'pem' }).toString()
    expect(() => createFacilitatorHeaders({ id: 'k', secret }, url, () => noon)).toThrow('P-256')
    expect(() => createFacilitatorHeaders({ id: 'k', secret: 'c2hvcnQ=' }, url, () => noon)).toThrow('base64')
  })
})
