/** Our signer and verifier under the published vector of RFC 9421 for Ed25519, whose key the drafts of Web Bot Auth use too. */
import { createPrivateKey, sign } from 'node:crypto'
import { createSignature, verifySignature } from 'http-message-sig'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { importPublicKey, verifyEd25519 } from '../../../../src/people/identity/keys/ed25519.ts'
import { computeThumbprint } from '../../../../src/people/identity/keys/thumbprint.ts'
import { createWebBotAuth } from '../../../../src/providers/web-bot-auth.ts'

/** @see https://www.rfc-editor.org/rfc/rfc9421#appendix-B.1.4 */
const x = 'JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs'
const privateKey = createPrivateKey({
  key: { kty: 'OKP', crv: 'Ed25519', x, d: 'n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU' },
  format: 'jwk',
})
/** @see https://datatracker.ietf.org/doc/draft-meunier-http-message-signatures-directory/ */
const THUMBPRINT = 'poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U'

/** @see https://www.rfc-editor.org/rfc/rfc9421#appendix-B.2.6 */
const created = 1_618_884_473
const request = {
  kind: 'request' as const,
  method: 'POST',
  targetUri: 'https://example.com/foo?param=Value&Pet=dog',
  fields: [
    { name: 'date', value: 'Tue, 20 Apr 2021 02:07:55 GMT' },
    { name: 'content-type', value: 'application/json' },
    { name: 'content-length', value: '18' },
  ],
}
const components = ['date', '@method', '@path', '@authority', 'content-type', 'content-length']
const published = {
  signatureInput: `sig-b26=(${components.map((one) => `"${one}"`).join(' ')});created=${created};keyid="test-key-ed25519"`,
  signature:
    'sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:',
}

describe('the published vector of RFC 9421 for Ed25519', () => {
  it('is what is signed', async () => {
    const signed = await createSignature(request, {
      label: 'sig-b26',
      components,
      parameters: { created, keyid: 'test-key-ed25519' },
      signer: { algorithm: 'ed25519', sign: (data) => sign(null, data, privateKey) },
    })
    expect(signed).toEqual(published)
  })

  it('verifies, and does not for another path', async () => {
    const check = (targetUri: string) =>
      verifySignature(
        {
          ...{ ...request, targetUri },
          fields: [
            ...request.fields,
            { name: 'signature-input', value: published.signatureInput },
            { name: 'signature', value: published.signature },
          ],
        },
        {
          policy: {
            ...{ algorithms: ['ed25519'], requiredComponents: components, now: created },
            requiredParameters: ['created', 'keyid'],
          },
          resolveVerifier: async () => ({
            algorithm: 'ed25519',
            verify: (data, signature) => verifyEd25519(importPublicKey(x), data, signature),
          }),
        },
      )
    await expect(check(request.targetUri)).resolves.toBeDefined()
    await expect(check('https://example.com/bar')).rejects.toThrow()
  })

  it('has the thumbprint under which a directory publishes the key', async () => {
    expect(computeThumbprint(x)).toBe(THUMBPRINT)
    const { directory } = createWebBotAuth({
      keys: { current: privateKey, previous: null },
      origin: 'https://example.com',
      clock: () => new Date(created * 1_000),
    })
    const { body } = await directory()
    const { keys } = z.object({ keys: z.array(z.looseObject({ kid: z.string() })) }).parse(JSON.parse(body))
    expect(keys).toMatchObject([{ kid: THUMBPRINT, kty: 'OKP', crv: 'Ed25519', x }])
  })
})
