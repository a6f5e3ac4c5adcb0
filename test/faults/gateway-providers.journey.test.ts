/** A gateway whose providers all misbehave: every affected route reports it in time, and nothing is half done. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Gateway, startGateway } from '../journeys/gateway.ts'
import { newGuest, type Person } from '../journeys/people.ts'
import { expectUnavailable, sendJson } from './ask.ts'
import { type MisbehavingServer, startMisbehaving } from './misbehaving-server.ts'

const address = '0x000000000000000000000000000000000000dEaD'
const applicant = {
  ...{ firstName: 'Ada', lastName: 'Lovelace', dateOfBirth: '1990-01-01', country: 'DE' },
  address: 'Street 1, Berlin',
}

/** Requests, with the permitted failure codes. Dollars need no rates. */
const routes: readonly (readonly [string, unknown, readonly string[]])[] = [
  [
    'POST /api/wallets/transfer',
    { destination: address, amount: '1', signature: 'sandbox' },
    ['screening_unavailable'],
  ],
  ['POST /api/cards', { nickname: 'None' }, ['provider_unavailable']],
  [
    'POST /api/swaps',
    { fromToken: 'USDC', toToken: 'USDT', fromChain: 'base', toChain: 'arbitrum', amountIn: '5' },
    ['no_route'],
  ],
  ['POST /api/compliance/kyc', { applicant }, ['provider_unavailable']],
  ['GET /api/x402/fx?from=USD&to=EUR&amount=1', undefined, ['rates_unavailable']],
  ['POST /api/auth/google', {}, ['provider_unavailable']],
]

describe.each(['never answers', 'answers HTML with 200'] as const)(
  'with every provider in the mode: %s',
  (how) => {
    let server: MisbehavingServer
    let gateway: Gateway
    let person: Person

    beforeAll(async () => {
      server = await startMisbehaving(how)
      const { url } = server
      gateway = await startGateway({
        CHAIN: 'simulated',
        LOG_LEVEL: 'silent',
        RATE_MUTATIONS: '100000/60',
        SCREENING_URL: url,
        FX_RATES_URL: url,
        ...{ LITHIC_API_URL: url, LITHIC_API_KEY: 'a-key-of-ours' },
        ...{ BRIDGE_API_URL: url, BRIDGE_API_KEY: 'a-key-of-ours' },
        ...{ SWAP_AGGREGATORS: 'lifi,relay,across', LIFI_URL: url, RELAY_URL: url, ACROSS_URL: url },
        ...{ SUMSUB_URL: url, SUMSUB_APP_TOKEN: 'token', SUMSUB_SECRET_KEY: 'secret' },
        ...{ IDENTITY_PROVIDERS: 'google', OIDC_GOOGLE_ISSUER: url },
        ...{ OIDC_GOOGLE_CLIENT_ID: 'id', OIDC_GOOGLE_CLIENT_SECRET: 'secret' },
      })
      person = await newGuest(gateway.origin)
    }, 60_000)
    afterAll(async () => {
      await server?.close()
      await gateway?.stop()
    })

    it('reports it in time on every affected route, and keeps all money free', async () => {
      const before = (await person.send('GET', '/api/wallets')).body.balances
      const answers = await Promise.all(
        routes.map(async ([route, body, codes]) => {
          const [method = '', path = ''] = route.split(' ')
          const told = await sendJson(`${gateway.origin}${path}`, {
            method,
            headers: {
              authorization: `Bearer ${person.token}`,
              ...(method === 'POST' ? { 'idempotency-key': route.replace(' ', '') } : {}),
            },
            body,
          })
          return { route, codes, told }
        }),
      )
      expect(answers.map(({ route, told }) => [route, told.status])).toEqual(
        routes.map(([route]) => [route, 503]),
      )
      for (const { codes, told } of answers) expectUnavailable(told, ...codes)
      expect((await person.send('GET', '/api/wallets')).body.balances).toEqual(before)
      const { cards } = z
        .object({ cards: z.array(z.unknown()) })
        .parse((await person.send('GET', '/api/cards')).body)
      expect(cards).toEqual([])
    })
  },
)
