/** Lifetimes of codes, tokens and grants, in the settings of the OAuth library. */
import { generateKeyPairSync } from 'node:crypto'
import { errors, interactionPolicy } from 'oidc-provider'
import { expect, it } from 'vitest'
import { exportTokenJwks } from '../../../../src/people/identity/oauth/oauth-tokens.ts'
import { fetchPublic } from '../../../../src/providers/public-fetch.ts'
import { oauthConfiguration } from '../../../../src/server/http/authorization-server/configuration.ts'

it('gives codes a minute, access tokens ten, and no grant more than a year despite refreshes', async () => {
  const configuration = oauthConfiguration({
    origin: 'https://bursar.example',
    consentPath: '/oauth/consent',
    storage: () => {
      throw new Error('nothing is stored')
    },
    cookieKey: 'a key of thirty-two letters or so',
    signingKeys: await exportTokenJwks({
      current: generateKeyPairSync('ed25519').privateKey,
      previous: null,
    }),
    library: { interactionPolicy, errors },
    isLive: async () => true,
    fetchPublic,
  })
  const days = (count: number) => count * 24 * 60 * 60
  expect(configuration.ttl).toMatchObject({
    AuthorizationCode: 60,
    AccessToken: 600,
    RefreshToken: days(30),
    Grant: days(365),
  })
  expect(configuration.rotateRefreshToken).toBe(true)
})
