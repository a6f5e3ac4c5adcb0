/** Delegations that parents sign without asking the gateway, over real HTTP: what verifies, and what is refused and writes nothing. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { Bursar } from '../../src/client/bursar.ts'
import { delegate } from '../../src/client/delegate.ts'
import { bursar } from '../commands/bursar.ts'
import { type Agent, newAgent } from './agent.ts'
import { overSharedAndPostgres } from './both-engines.ts'
import { newGuest, type Person, requestJson } from './people.ts'
import {
  buildClaims,
  type Claims,
  childPolicy,
  nowSeconds,
  signByHand,
  signWithJose,
} from './signed-delegation.ts'

const DAY = 86_400
const PAYEE = '0x000000000000000000000000000000000000dEaD'
const parentPolicy = {
  perTransaction: { max: '5' },
  dailyBudget: { max: '10' },
  totalBudget: { max: '20' },
  categories: { allow: ['transfer'] },
}
interface Tree {
  readonly agentId: string
  readonly name: string
  readonly status: string
  readonly children: readonly Tree[]
}
const tree: z.ZodType<Tree> = z.lazy(() =>
  z.object({ agentId: z.string(), name: z.string(), status: z.string(), children: z.array(tree) }),
)

overSharedAndPostgres('signed delegations', ({ gateway }) => {
  let owner: Person
  let root: Agent
  let rootId: string
  let [child, grandchild]: [Agent, Agent] = [] as never

  const origin = () => gateway().origin
  const register = async (agent: Agent, changes: object = {}) => {
    const { body } = await owner.send('POST', '/api/agents/keys', {
      name: 'Root',
      publicKey: agent.jwk,
      scopes: ['wallets:read', 'wallets:transfer', 'agents:delegate'],
      policy: parentPolicy,
      ...changes,
    })
    return z.string().parse(body.agentId)
  }
  beforeEach(async () => {
    owner = await newGuest(origin())
    ;[root, child, grandchild] = [await newAgent(), await newAgent(), await newAgent()]
    rootId = await register(root)
  })

  const claimsOf = (parent: Agent, to: Agent, changes: Claims = {}) =>
    buildClaims({ parent, child: to, origin: origin() }, changes)
  const send = async (agent: Agent, chain: readonly string[] | null, path = '/api/wallets') => {
    const response = await agent.fetch({
      method: 'GET',
      url: `${origin()}${path}`,
      ...(chain === null ? {} : { fields: { 'bursar-delegation': chain.join(', ') } }),
    })
    return { status: response.status, body: z.looseObject({}).parse(await response.json()) }
  }
  const pay = async (agent: Agent, chain: readonly string[] | null, amount: string) => {
    const response = await agent.fetch({
      method: 'POST',
      url: `${origin()}/api/wallets/transfer`,
      body: JSON.stringify({ destination: PAYEE, amount, token: 'USDC' }),
      ...(chain === null ? {} : { fields: { 'bursar-delegation': chain.join(', ') } }),
    })
    return { status: response.status, body: z.looseObject({}).parse(await response.json()) }
  }
  const readTree = async () => {
    const { body } = await owner.send('GET', `/api/agents/keys/${rootId}/tree`)
    return tree.parse(body)
  }
  const refused = (reason: string) => ({ status: 401, body: { code: 'delegation_invalid', reason } })

  it('is accepted from jose and from plain Ed25519, over four generations, and spends', async () => {
    const agents = [root, child, grandchild, await newAgent(), await newAgent()]
    const chain: string[] = []
    for (const [index, parent] of agents.slice(0, 4).entries()) {
      const to = agents[index + 1] ?? child
      const claims = claimsOf(parent, to, { name: `Generation ${index + 1}` })
      chain.push(index % 2 === 0 ? await signWithJose(parent, claims) : signByHand(parent, claims))
    }
    const last = agents[4] ?? child
    expect(await pay(last, chain, '0.5')).toMatchObject({ status: 200, body: { amount: '0.5' } })
    const { body: usage } = await owner.send('GET', `/api/agents/keys/${rootId}/usage`)
    expect(usage.usage).toMatchObject({ count: 1 })
    const names: string[] = []
    for (let [at] = (await readTree()).children; at !== undefined; [at] = at.children) names.push(at.name)
    expect(names).toEqual(['Generation 1', 'Generation 2', 'Generation 3', 'Generation 4'])
    // A link of the middle, and the policy of each generation.
    expect((await send(child, chain.slice(0, 1))).status).toBe(200)
    expect(await pay(last, null, '1.01')).toMatchObject({ status: 403, body: { code: 'policy_denied' } })
  })

  it('is one child, however often it is sent, and needs no chain after its first use', async () => {
    const chain = [await signWithJose(root, claimsOf(root, child))]
    expect(await send(child, null)).toMatchObject({ status: 401, body: { code: 'unknown_key' } })
    for (const sent of [chain, chain, null])
      expect(await pay(child, sent, '0.1')).toMatchObject({ status: 200 })
    const { children } = await readTree()
    expect(children).toMatchObject([{ name: 'Helper', status: 'active' }])
    const { body } = await owner.send('GET', '/api/agents/delegations')
    expect(body.delegations).toMatchObject([
      { parentId: rootId, depth: 1, status: 'active', policy: childPolicy },
    ])
  })

  it('is the same child when its claims are signed again, in another order', async () => {
    const claims = claimsOf(root, child)
    expect((await send(child, [await signWithJose(root, claims)])).status).toBe(200)
    const reversed = Object.fromEntries(Object.entries(claims).reverse())
    expect((await send(child, [signByHand(root, reversed)])).status).toBe(200)
    expect((await readTree()).children).toHaveLength(1)
  })

  it('is refused with a reason, and nothing is written', async () => {
    const sign = (changes: Claims, header: Claims = {}) => [
      signByHand(root, claimsOf(root, child, changes), header),
    ]
    const scopes = ['wallets:read', 'cards:read']
    const wider = { ...childPolicy, dailyBudget: { max: '11' } }
    const cases: readonly (readonly [string, string, readonly string[]])[] = [
      ['type', 'signature', sign({}, { typ: 'JWT' })],
      ['algorithm', 'signature', sign({}, { alg: 'none' })],
      ['name of an algorithm', 'signature', sign({}, { alg: 'Ed25519' })],
      ['kid', 'signature', sign({}, { kid: child.keyId })],
      ['critical header', 'signature', sign({}, { crit: ['b64'], b64: true })],
      ['unknown claim', 'signature', sign({ nbf: nowSeconds() + 60 })],
      ['no jti', 'signature', sign({ jti: undefined })],
      ['no policy', 'signature', sign({ policy: undefined })],
      ['private key', 'signature', sign({ cnf: { jwk: { ...child.jwk, d: child.jwk.x } } })],
      ['weak key', 'signature', sign({ cnf: { jwk: { ...child.jwk, x: 'A'.repeat(43) } } })],
      ['no exp', 'expired', sign({ exp: undefined })],
      ['text as exp', 'expired', sign({ exp: '2099-01-01' })],
      ['past exp', 'expired', sign({ iat: nowSeconds() - 60, exp: nowSeconds() - 1 })],
      ['long exp', 'expired', sign({ exp: nowSeconds() + 30 * DAY + 60 })],
      ['old iat', 'expired', sign({ iat: nowSeconds() - 30 * DAY, exp: nowSeconds() + 60 })],
      ['future iat', 'expired', sign({ iat: nowSeconds() + 60 })],
      ['no aud', 'audience', sign({ aud: undefined })],
      ['other aud', 'audience', sign({ aud: 'https://bursar.example' })],
      ['list of aud', 'audience', sign({ aud: [origin()] })],
      ['scopes', 'wider', sign({ scopes })],
      ['unknown scope', 'wider', sign({ scopes: ['everything'] })],
      ['policy', 'wider', sign({ policy: wider })],
      ['unknown iss', 'unknown_parent', [signByHand(grandchild, claimsOf(grandchild, child))]],
      ['forged', 'signature', [signByHand(grandchild, claimsOf(root, child), { kid: root.keyId })]],
      ['other key of the request', 'signature', [signByHand(root, claimsOf(root, grandchild))]],
      ['nothing', 'signature', ['']],
      ['no JWS', 'signature', ['a.b.c']],
      ['empty member', 'signature', [...sign({}), '']],
    ]
    for (const [name, reason, chain] of cases)
      expect(await send(child, chain), name).toMatchObject(refused(reason))
    expect((await readTree()).children).toEqual([])
    const { body } = await owner.send('GET', '/api/agents/delegations?status=all')
    expect(body.delegations).toEqual([])
    expect((await send(child, sign({ iat: nowSeconds() + 20 }))).status).toBe(200)
  })

  it('is refused when it was changed, reordered, cut or lengthened, and nothing is written', async () => {
    const first = await signWithJose(root, claimsOf(root, child))
    const second = await signWithJose(child, claimsOf(child, grandchild))
    const [head = '', body = '', mac = ''] = first.split('.')
    const richer = Buffer.from(
      Buffer.from(body, 'base64url').toString().replace('"max":"1"', '"max":"5"'),
    ).toString('base64url')
    const flipped = `${mac.startsWith('A') ? 'B' : 'A'}${mac.slice(1)}`
    const other = await newAgent()
    const cases: readonly (readonly [string, readonly string[], Agent])[] = [
      ['changed claims', [[head, richer, mac].join('.'), second], grandchild],
      ['changed signature', [[head, body, flipped].join('.'), second], grandchild],
      ['reordered', [second, first], grandchild],
      ['cut at its end', [first], grandchild],
      ['cut at its start', [second], grandchild],
      ['doubled', [first, first, second], grandchild],
      ['with a part of another', [first, signByHand(other, claimsOf(other, grandchild))], grandchild],
      [
        'lengthened by a stranger',
        [first, signByHand(other, claimsOf(child, other), { kid: child.keyId })],
        other,
      ],
      ['with another suffix', [`${first}.${mac}`, second], grandchild],
      ['with padding', [`${first}=`, second], grandchild],
    ]
    for (const [name, chain, agent] of cases)
      expect(await send(agent, chain), name).toMatchObject({
        status: 401,
        body: { code: 'delegation_invalid' },
      })
    expect((await readTree()).children).toEqual([])
    expect((await send(grandchild, [first, second])).status).toBe(200)
  })

  it('must be covered by the signature of the request', async () => {
    const chain = await signWithJose(root, claimsOf(root, child))
    const sendUncovered = async (name: string, value: string, agent: Agent) => {
      const response = await agent.fetch({
        method: 'GET',
        url: `${origin()}/api/wallets`,
        fields: { [name]: value },
        uncovered: [name],
      })
      return { status: response.status, body: await response.json() }
    }
    const invalid = { status: 401, body: { code: 'signature_invalid' } }
    expect(await sendUncovered('bursar-delegation', chain, child)).toMatchObject(invalid)
    expect(await sendUncovered('bursar-task', 'a task', root)).toMatchObject(invalid)
    expect((await readTree()).children).toEqual([])
  })

  it('makes no key for a request whose own signature is wrong or old', async () => {
    const fields = { 'bursar-delegation': await signWithJose(root, claimsOf(root, child)) }
    const request = { method: 'GET', url: `${origin()}/api/wallets`, fields }
    const elsewhere = await child.sign({ ...request, url: `${origin()}/api/rails` })
    const old = await child.sign({
      ...request,
      parameters: { created: new Date(Date.now() - 200_000), expires: new Date(Date.now() - 100_000) },
    })
    for (const [headers, code] of [
      [elsewhere, 'signature_invalid'],
      [old, 'signature_expired'],
    ] as const)
      expect(await requestJson(origin(), 'GET', '/api/wallets', { headers })).toMatchObject({
        status: 401,
        body: { code },
      })
    expect((await readTree()).children).toEqual([])
  })

  it('reuses no jti for other claims', async () => {
    const jti = 'the first task'
    expect((await send(child, [signByHand(root, claimsOf(root, child, { jti }))])).status).toBe(200)
    const others = [
      [child, signByHand(root, claimsOf(root, child, { jti, exp: nowSeconds() + 1800 }))],
      [grandchild, signByHand(root, claimsOf(root, grandchild, { jti }))],
    ] as const
    for (const [agent, chain] of others) expect(await send(agent, [chain])).toMatchObject(refused('replayed'))
    // A name is its parent's own.
    const below = [
      signByHand(root, claimsOf(root, grandchild, { jti: 'another' })),
      signByHand(grandchild, claimsOf(grandchild, await newAgent(), { jti })),
    ]
    expect((await send(grandchild, below.slice(0, 1))).status).toBe(200)
    expect((await readTree()).children).toHaveLength(2)
  })

  it('refuses a key that is registered already', async () => {
    await register(child, { scopes: [], policy: undefined })
    const chain = [signByHand(root, claimsOf(root, child))]
    expect(await send(child, chain)).toMatchObject({ status: 409, body: { code: 'conflict' } })
    const again = signByHand(root, claimsOf(root, grandchild))
    expect((await send(grandchild, [again])).status).toBe(200)
    const renewed = signByHand(root, claimsOf(root, grandchild))
    expect(await send(grandchild, [renewed])).toMatchObject({ status: 409, body: { code: 'conflict' } })
    expect((await readTree()).children).toHaveLength(1)
  })

  it('gives only what its parent has, where the parent is only a part of the chain', async () => {
    const first = signByHand(root, claimsOf(root, child))
    const cases: readonly (readonly [Claims, readonly string[]])[] = [
      [{ policy: { ...childPolicy, dailyBudget: { max: '4' } } }, [first]],
      [{ policy: { ...childPolicy, categories: { allow: ['transfer', 'card'] } } }, [first]],
      [{ exp: nowSeconds() + 7200 }, [first]],
      [{ scopes: ['banking:read'] }, [first]],
      [{}, [signByHand(root, claimsOf(root, child, { scopes: ['wallets:read', 'wallets:transfer'] }))]],
    ]
    for (const [changes, above] of cases)
      expect(
        await send(grandchild, [...above, signByHand(child, claimsOf(child, grandchild, changes))]),
      ).toMatchObject(refused('wider'))
    expect((await readTree()).children).toEqual([])
  })

  it('is refused beyond four generations, counted from the root of the registered key', async () => {
    const agents = [root, child, grandchild, await newAgent(), await newAgent(), await newAgent()]
    const chain = agents.slice(0, 5).map((parent, index) => {
      return signByHand(parent, claimsOf(parent, agents[index + 1] ?? root))
    })
    const last = agents[5] ?? root
    expect(await send(last, chain)).toMatchObject(refused('depth'))
    expect((await readTree()).children).toEqual([])
    expect((await send(agents[4] ?? root, chain.slice(0, 4))).status).toBe(200)
    expect(await send(last, chain.slice(1))).toMatchObject(refused('depth'))
    expect(await send(last, chain.slice(4))).toMatchObject(refused('depth'))
  })

  it('ends at once with each of its ancestors, with and without its chain', async () => {
    const chain = [signByHand(root, claimsOf(root, child)), signByHand(child, claimsOf(child, grandchild))]
    expect((await pay(grandchild, chain, '0.1')).status).toBe(200)
    const [made] = (await readTree()).children
    expect((await owner.send('DELETE', `/api/agents/delegations/${made?.agentId}`)).status).toBe(200)
    expect(await pay(grandchild, null, '0.1')).toMatchObject({ status: 401, body: { code: 'unknown_key' } })
    expect(await pay(grandchild, chain, '0.1')).toMatchObject(refused('revoked'))
    expect(await send(child, chain.slice(0, 1))).toMatchObject(refused('revoked'))
    const other = await newAgent()
    const later = [chain[0] ?? '', signByHand(child, claimsOf(child, other))]
    expect(await send(other, later)).toMatchObject(refused('revoked'))
    await owner.send('DELETE', `/api/agents/keys/${rootId}`)
    expect(await send(other, [signByHand(root, claimsOf(root, other))])).toMatchObject(refused('revoked'))
  })

  it('makes no key below a paused one', async () => {
    await owner.send('POST', `/api/agents/keys/${rootId}/pause`)
    expect(await send(child, [signByHand(root, claimsOf(root, child))])).toMatchObject({
      status: 403,
      body: { code: 'policy_denied', violations: [{ rule: 'paused', agentId: rootId }] },
    })
    expect((await readTree()).children).toEqual([])
  })

  it('sets its earmark aside, and is refused when less is left', async () => {
    const policy = { ...childPolicy, totalBudget: { max: '6' } }
    const first = [signByHand(root, claimsOf(root, child, { policy, earmark: true }))]
    expect((await send(child, first)).status).toBe(200)
    const { body } = await owner.send('GET', '/api/agents/delegations')
    expect(body.delegations).toMatchObject([{ earmarked: '6' }])
    const second = [signByHand(root, claimsOf(root, grandchild, { policy, earmark: true }))]
    expect(await send(grandchild, second)).toMatchObject({
      status: 403,
      body: { code: 'policy_denied', violations: [{ agentId: rootId }] },
    })
    expect((await readTree()).children).toHaveLength(1)
    expect(await pay(root, null, '4.5')).toMatchObject({ status: 403, body: { code: 'policy_denied' } })
    const without = [signByHand(root, claimsOf(root, grandchild, { earmark: true }))]
    expect(await send(grandchild, without)).toMatchObject(refused('signature'))
  })

  it('judges first use by the policy that a parent has now, and not by what it was given', async () => {
    const first = signByHand(root, claimsOf(root, child))
    expect((await send(child, [first])).status).toBe(200)
    const [made] = (await readTree()).children
    const policy = { ...childPolicy, perTransaction: { max: '0.5' } }
    expect((await owner.send('PATCH', `/api/agents/keys/${made?.agentId}`, { policy })).status).toBe(200)
    expect(await send(grandchild, [first, signByHand(child, claimsOf(child, grandchild))])).toMatchObject(
      refused('wider'),
    )
    const narrow = signByHand(child, claimsOf(child, grandchild, { policy }))
    expect((await send(grandchild, [first, narrow])).status).toBe(200)
  })

  it('is signed by the client, and by the command line for a child of its child', async () => {
    const { d = '' } = root.privateKey.export({ format: 'jwk' })
    const terms = { url: origin(), name: 'Client', scopes: ['wallets:read', 'agents:delegate'] }
    const expiresAt = new Date(Date.now() + 3_600_000)
    const parent = { keyId: root.keyId, privateKey: { ...root.jwk, d } }
    const first = await delegate(parent, { ...terms, expiresAt })
    const second = await delegate(first, { ...terms, expiresAt, name: 'Second' })
    const { balances } = await new Bursar({ url: origin(), agentKey: second }).wallets.get()
    expect(balances.length).toBeGreaterThan(0)

    const folder = mkdtempSync(join(tmpdir(), 'bursar-delegate-'))
    try {
      const [file, out] = [join(folder, 'parent.json'), join(folder, 'child.json')]
      writeFileSync(file, JSON.stringify(first))
      const data = JSON.stringify({ scopes: ['wallets:read'], expiresAt })
      const args = ['agent', 'delegate', '--key', file, '--name', 'Shell', '--out', out, '--url', origin()]
      expect(await bursar([...args, '--data', data])).toMatchObject({ code: 0 })
      expect(await bursar([...args, '--data', '{"scopes":[]}'])).toMatchObject({ code: 1 })
      const called = await bursar(['agent', 'call', '--key', out, 'GET', `${origin()}/api/wallets`])
      expect(called).toMatchObject({ code: 0 })
    } finally {
      rmSync(folder, { recursive: true })
    }
    const [made] = (await readTree()).children
    expect(made?.children.map(({ name }) => name).sort()).toEqual(['Second', 'Shell'])
  })
})
