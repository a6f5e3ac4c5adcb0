/**
 * Every adapter with an HTTP provider, against every misbehaviour: each call ends in bounded time with the failure that
 * its port promises, reads a bounded number of bytes, and never throws what would be answered as `internal`.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/core/base/clock.ts'
import { newId } from '../../src/core/base/ids.ts'
import { silentLog as log } from '../../src/core/base/log.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { findSwapToken } from '../../src/core/money/swap-tokens.ts'
import { createBridgeBanking } from '../../src/providers/banking/bridge.ts'
import { createAlpacaBroker } from '../../src/providers/broker/alpaca.ts'
import { createLithicProcessor } from '../../src/providers/card-processor/lithic.ts'
import { createOpenIdProvider } from '../../src/providers/identity-provider/openid.ts'
import { createSumsubReview } from '../../src/providers/identity-review/sumsub.ts'
import { createTwilioMessages } from '../../src/providers/messages/twilio.ts'
import { createRemoteRailControls } from '../../src/providers/rail-controls/remote.ts'
import { createEcbRates } from '../../src/providers/rates/ecb.ts'
import { createChainalysisScreening } from '../../src/providers/screening/chainalysis.ts'
import { createAcross } from '../../src/providers/swap-aggregator/across.ts'
import { createLifi } from '../../src/providers/swap-aggregator/lifi.ts'
import type { SwapAggregator } from '../../src/providers/swap-aggregator/port.ts'
import { createRelay } from '../../src/providers/swap-aggregator/relay.ts'
import { createZeroEx } from '../../src/providers/swap-aggregator/zeroex.ts'
import {
  allMisbehaviours,
  type MisbehavingServer,
  type Misbehaviour,
  startMisbehaving,
} from './misbehaving-server.ts'

/** Within the time limit of a whole request. */
const MAX_MS = 9_000
/** Includes what the operating system's buffers accept. */
const MAX_BYTES = 16 * 1024 * 1024

interface Asked {
  readonly name: string
  /** Permitted failure codes. */
  readonly codes: readonly string[]
  /** Misbehaviours that this adapter reads as an answer. */
  readonly answers?: Partial<Record<Misbehaviour, unknown>>
  ask(url: string): Promise<unknown>
}

const now = systemClock()
const address = `0x${'1'.repeat(40)}` as const
const unavailable = ['provider_unavailable']

const alpaca = (url: string) =>
  createAlpacaBroker({
    ...{ url, dataUrl: url, clock: systemClock, log },
    ...{ apiKey: 'key', apiSecret: 'secret', firmAccountId: 'firm' },
  })
const order = {
  id: 'ord_1',
  symbol: 'VTI',
  side: 'buy',
  notional: 100n,
  qty: null,
  limitPrice: null,
  brokerageAccount: 'account',
} as const

const bankCustomers = (url: string) => {
  const { customers } = createBridgeBanking({ url, apiKey: 'key', webhookKeys: [], log })
  if (customers === null) throw new Error('the bank has no customers')
  return customers
}
const sumsub = (url: string) =>
  createSumsubReview({
    ...{ url, appToken: 'token', secretKey: 'secret', webhookSecret: null, clock: systemClock },
    levels: { basic: 'basic', full: 'full' },
  })
const applicant = {
  ...{ firstName: 'A', lastName: 'B', dateOfBirth: '1990-01-01', country: 'DE', address: 'Street 1' },
  ...{ residence: {}, email: null, phone: null },
}

const requestQuote = ({ quote }: SwapAggregator) => {
  const [from, to] = [findSwapToken('base', 'USDC'), findSwapToken('arbitrum', 'USDT')]
  if (from === undefined || to === undefined) throw new Error('unknown tokens')
  const request = { from, to, amountIn: 100_000_000n, slippageBps: 50, sender: address }
  return quote(request, AbortSignal.timeout(2_000))
}
/** An aggregator's 404 means that it has no route. */
const noRoute = { 'answers 404 in HTML': { status: 'none', reason: 'no_route' } }
const reasons = ['timeout', 'unavailable', 'bad_answer']

const asked: readonly Asked[] = [
  {
    name: 'the card processor, for a card',
    codes: unavailable,
    ask: (url) =>
      createLithicProcessor({ url, apiKey: 'key', secretsAt: () => [], eventSecretsAt: () => [], log }).issue(
        {
          cardId: newId('card', now),
          nickname: null,
          at: now,
          singleUse: null,
        },
      ),
  },
  {
    name: 'the bank, for an account',
    codes: unavailable,
    ask: (url) =>
      createBridgeBanking({ url, apiKey: 'key', webhookKeys: [], log }).open({
        ...{ id: newId('va', now), currency: 'EUR' },
        holder: { accountId: newId('acct', now), name: 'A B', customer: 'cust_1' },
        destination: { token: 'USDC', chain: 'base', address },
      }),
  },
  {
    name: 'the bank, for a customer',
    codes: unavailable,
    ask: (url) => bankCustomers(url).start({ id: newId('acct', now), name: 'A B', email: 'a@example.com' }),
  },
  {
    name: 'the bank, for the state of a customer',
    codes: unavailable,
    ask: (url) => bankCustomers(url).read('kyc_link_1'),
  },
  {
    name: 'the broker, for an instrument',
    codes: unavailable,
    answers: {},
    ask: (url) => alpaca(url).quotes(['VTI']),
  },
  {
    name: 'the broker, for an order',
    codes: unavailable,
    // The order may have been placed: an unreadable answer stops it for a person's review.
    answers: Object.fromEntries(
      ['nothing with 200', 'JSON of another shape', 'null', 'a list'].map((what) => [
        `answers ${what}`,
        { status: 'placed', report: expect.objectContaining({ status: 'unreadable' }) },
      ]),
    ),
    ask: (url) => alpaca(url).place(order),
  },
  {
    name: 'the broker, for a history',
    codes: unavailable,
    ask: (url) => alpaca(url).history(['VTI'], [new Date(now.getTime() - 86_400_000), now]),
  },
  {
    name: 'the broker, for dividends',
    codes: unavailable,
    ask: (url) => alpaca(url).dividends('2026-01-01', '2026-12-31'),
  },
  ...(
    [
      ['LI.FI', (url: string) => createLifi({ url, apiKey: 'key' })],
      ['Relay', (url: string) => createRelay({ url, apiKey: 'key' })],
      ['0x', (url: string) => createZeroEx({ url, apiKey: 'key' })],
      ['Across', (url: string) => createAcross({ url, apiKey: 'key' })],
    ] as const
  ).map(([tool, create]) => ({
    name: `${tool}, for a quote`,
    codes: reasons,
    answers: noRoute,
    ask: (url: string) => requestQuote(create(url)),
  })),
  {
    name: 'the provider of screening, for an address',
    codes: ['screening_unavailable'],
    ask: (url) => createChainalysisScreening({ url, apiKey: 'key', log }).screen(address),
  },
  {
    name: 'the provider of identity reviews, with an application',
    codes: unavailable,
    ask: (url) => sumsub(url).submit({ id: newId('kyc', now), level: 'basic', applicant, documents: [] }),
  },
  {
    name: 'the provider of identity reviews, for a review',
    codes: unavailable,
    ask: (url) => sumsub(url).read('a1'),
  },
  {
    name: 'the control plane, for a rail',
    codes: ['controls_unavailable'],
    ask: (url) => createRemoteRailControls({ url }).read('wallet-transfer'),
  },
  {
    name: 'the publisher of rates',
    codes: ['rates_unavailable'],
    ask: (url) => createEcbRates({ url, log }).latest(now),
  },
  {
    name: 'the identity provider, to begin a sign-in',
    codes: unavailable,
    ask: (url) =>
      createOpenIdProvider(
        { name: 'google', issuer: url, clientId: 'id', clientSecret: 'secret', scope: null },
        { log },
      ).authorizationUrl(
        { state: 's'.repeat(43), nonce: 'n'.repeat(43), codeVerifier: 'v'.repeat(43) },
        'http://127.0.0.1/callback',
      ),
  },
  {
    name: 'the sender of SMS',
    codes: unavailable,
    ask: (url) =>
      createTwilioMessages({ url, accountSid: 'AC1', authToken: 'token', from: '+15005550006', log }).send({
        ...{ channel: 'sms', destination: '+491701234567', subject: 'Code', text: '123456', code: '123456' },
        at: now,
      }),
  },
]

/** Result of a call: an answer, or its failure code. */
async function awaitOutcome(work: Promise<unknown>): Promise<unknown> {
  try {
    return { answered: await work }
  } catch (error) {
    if (error instanceof Failure)
      return error.members.retryAfter === undefined ? `${error.code} for good` : error.code
    return error instanceof Error ? error.message : error
  }
}

describe.each(allMisbehaviours)('with a server that: %s', (how) => {
  const servers: MisbehavingServer[] = []
  const found = new Map<string, { outcome: unknown; ms: number; sent: () => number }>()

  // Concurrent: most of the time is waiting.
  beforeAll(async () => {
    await Promise.all(
      asked.map(async ({ name, ask }) => {
        const server = await startMisbehaving(how)
        servers.push(server)
        const start = performance.now()
        const outcome = await awaitOutcome(ask(server.url))
        found.set(name, { outcome, ms: performance.now() - start, sent: server.sentBytes })
      }),
    )
  }, 60_000)
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.close()))
  })

  it.each(asked)('$name fails as its port promises', async ({ name, codes, answers = {} }) => {
    const { outcome, ms, sent } = found.get(name) ?? { outcome: 'not asked', ms: 0, sent: () => 0 }
    if (answers[how] !== undefined) expect(outcome).toEqual({ answered: answers[how] })
    else expect(codes).toContain(outcome)
    expect(ms).toBeLessThan(MAX_MS)
    expect(sent()).toBeLessThan(MAX_BYTES)
  })
})
