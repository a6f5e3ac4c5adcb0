/** Callers: people, keys and agents, replaced when one is locked, revoked or signed out during the campaign. */
import { z } from 'zod'
import { scopes } from '../../policies/scopes.ts'
import { newAgent } from '../journeys/agent.ts'
import { enrollMfa, newGuest, type Person, requestJson, signInByEmail } from '../journeys/people.ts'

/** An unauthenticated request. */
export interface Unsigned {
  readonly method: string
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

/** Headers that authenticate a request. */
type Credential = (request: Unsigned) => Promise<Record<string, string>>

/** A policy that allows nearly everything, for the length of a campaign. */
const wide = {
  perTransaction: { max: '100000' },
  dailyBudget: { max: '1000000' },
  categories: { allow: ['transfer', 'gasless', 'card', 'invest', 'swap', 'x402'] },
}
const tight = {
  perTransaction: { max: '5' },
  dailyBudget: { max: '50', maxCount: 200 },
  categories: { allow: ['transfer', 'invest', 'x402'] },
  assets: ['USDC', 'USD'],
  approval: { above: '2', ttlSec: 3600 },
  counterparties: { deny: [`0x${'2'.repeat(40)}`] },
}
const allScopes = Object.keys(scopes)

const bearer =
  (token: string): Credential =>
  async () => ({ authorization: `Bearer ${token}` })

/** The callers of one gateway. */
export interface Cast {
  readonly names: readonly string[]
  /** Callers with access to nearly every operation of their own account. */
  readonly able: readonly string[]
  /** Callers with a key, who may use `/mcp`. */
  readonly keys: readonly string[]
  /** Signs a request as a caller. */
  credentials(name: string, request: Unsigned): Promise<Record<string, string>>
  /** Reports a caller as rejected or locked. @returns true if the next request gets a new one */
  renew(name: string): boolean
  /** An administrator that no request of the campaign uses. */
  judge(): Promise<Person>
}

/** Creates each caller on first use. */
export function createCast(origin: string): Cast {
  let people = 0
  const newPerson = () => {
    people += 1
    return signInByEmail(origin, `cast-${people}@example.com`)
  }
  const newAdmin = async () => {
    const person = await newPerson()
    await person.send('POST', '/sandbox/admin', {})
    return person
  }
  const newKey = async (owner: Person, more: object) => {
    const { body } = await owner.send('POST', '/api/developer/keys', { name: 'Key', ...more })
    return bearer(z.string().parse(body.key))
  }
  const newSigner = async (owner: Person, more: object): Promise<Credential> => {
    const agent = await newAgent()
    const { status, body } = await owner.send('POST', '/api/agents/keys', {
      name: 'Agent',
      publicKey: agent.jwk,
      ...more,
    })
    if (status !== 200) throw new Error(`no agent was registered: ${status} ${JSON.stringify(body)}`)
    return async ({ method, target, headers, body: text }) => {
      const key = headers['idempotency-key']
      return agent.sign({
        method,
        url: `${origin}${target}`,
        ...(text === null ? {} : { body: text }),
        ...(key === undefined ? {} : { idempotencyKey: key }),
      })
    }
  }
  const guest = () => newGuest(origin)
  /** What random requests do not make: a purchase, and the recourse of a transfer, which ends at once. */
  const buyAndAskBack = async (key: Credential) => {
    const send = async (path: string, body: object) => {
      const unsigned = { method: 'POST', target: path, headers: {}, body: JSON.stringify(body) }
      const headers = {
        ...(await key(unsigned)),
        'content-type': 'application/json',
        'idempotency-key': path,
      }
      const answer = await fetch(`${origin}${path}`, { method: 'POST', headers, body: unsigned.body })
      const read = z.looseObject({}).parse(await answer.json())
      if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${JSON.stringify(read)}`)
      return read
    }
    await send('/api/purchases', { url: `${origin}/sandbox/sellers/weather`, maxAmount: '0.05' })
    const destination = `0x${'3'.repeat(40)}`
    const sent = await send('/api/wallets/transfer', { destination, amount: '1', signature: 'sandbox' })
    await send('/api/recourse', {
      object: { kind: 'transfer', id: sent.transferId },
      reason: 'wrong_amount',
    })
  }
  const makers: Readonly<Record<string, () => Promise<Credential>>> = {
    anonymous: async () => async () => ({}),
    guest: async () => bearer((await guest()).token),
    'other guest': async () => bearer((await guest()).token),
    person: async () => bearer((await newPerson()).token),
    admin: async () => bearer((await newAdmin()).token),
    'person with a second factor': async () => {
      const person = await newPerson()
      await enrollMfa(person)
      return bearer(person.token)
    },
    browser: async () => {
      const { token } = await guest()
      return async () => ({ cookie: `bursar_session=${token}`, origin })
    },
    'browser on another site': async () => {
      const { token } = await guest()
      return async () => ({ cookie: `bursar_session=${token}`, origin: 'https://evil.example' })
    },
    key: async () => {
      const key = await newKey(await guest(), { scopes: allScopes, policy: wide })
      await buyAndAskBack(key)
      return key
    },
    'tight key': async () => newKey(await guest(), { scopes: allScopes, policy: tight }),
    'bare key': async () => newKey(await guest(), { scopes: [] }),
    agent: async () => newSigner(await guest(), { scopes: allScopes, policy: wide }),
    'tight agent': async () => newSigner(await guest(), { scopes: allScopes, policy: tight }),
    forger: async () => bearer('eyJhbGciOiJub25lIn0.eyJzdWIiOiJhY2N0XzEifQ.'),
    'two at once': async () => {
      const { token } = await guest()
      return async () => ({ cookie: `bursar_session=${token}`, authorization: `Bearer ${token}` })
    },
  }
  const made = new Map<string, Promise<Credential>>()
  const uses = new Map<string, number>()
  return {
    names: Object.keys(makers),
    able: ['guest', 'admin', 'person with a second factor', 'key', 'tight agent', 'agent'],
    keys: ['key', 'tight key', 'bare key', 'agent', 'tight agent'],
    async credentials(name, request) {
      const make = makers[name]
      if (make === undefined) throw new Error(`unknown caller ${name}`)
      const ready = made.get(name) ?? make()
      made.set(name, ready)
      uses.set(name, (uses.get(name) ?? 0) + 1)
      return (await ready)(request)
    },
    renew(name) {
      // A repeated rejection is due to the request.
      if ((uses.get(name) ?? 0) < 20 || ['anonymous', 'forger', 'two at once'].includes(name)) return false
      uses.set(name, 0)
      made.delete(name)
      return true
    },
    judge: newAdmin,
  }
}

/** The public sandbox credentials, which sign provider webhooks. */
export async function sandboxCredentials(origin: string) {
  const { body } = await requestJson(origin, 'GET', '/sandbox/credentials')
  return z
    .looseObject({
      lithicWebhookSecret: z.string(),
      bridgeWebhookPrivateKey: z.string(),
      demoApiKey: z.string(),
    })
    .parse(body)
}
