/**
 * One payment, one approval, over REST and both eras of MCP: a call that waits is asked for once, with its reason; a no is told
 * with its note; and what a key may not change it asks its owner to change.
 */
import { getAddress } from 'viem'
import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { approvableOperations } from '../../src/books/approvals/approvable-operations.ts'
import { tools } from '../../tools/index.ts'
import { overBothEngines } from '../journeys/both-engines.ts'
import { enrollMfa, newGuest, type Person } from '../journeys/people.ts'
import { openTransports, type Transports } from './ways.ts'

const text = z.string()
const payee = `0x${'1'.repeat(40)}`
const listed = z.object({ approvals: z.array(z.looseObject({ approvalId: z.string() })) })

overBothEngines('an approval', {}, (world) => {
  let owner: Person
  let keyId: string
  let cardId: string
  let ways: Transports
  beforeAll(async () => {
    const { origin } = world.gateway()
    owner = await newGuest(origin)
    await enrollMfa(owner)
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'Bot',
      scopes: ['wallets:read', 'wallets:transfer', 'cards:read', 'cards:write', 'banking:pay'],
      policy: {
        perTransaction: { max: '40' },
        dailyBudget: { max: '60' },
        categories: { allow: ['transfer', 'payout'] },
        approval: { above: '5', ttlSec: 3600 },
      },
    })
    keyId = text.parse(body.id)
    const { body: cards } = await owner.send('GET', '/api/cards')
    cardId = z.object({ cards: z.tuple([z.looseObject({ id: z.string() })]) }).parse(cards).cards[0].id
    ways = await openTransports({ gateway: world.gateway(), apiKey: text.parse(body.key) })
    return () => ways.close()
  })

  const pending = async () =>
    listed.parse((await owner.send('GET', '/api/approvals?status=pending')).body).approvals
  const transfer = (amount: string) => ({ destination: payee, amount, token: 'USDC' })
  const decide = (id: unknown, decision: object) =>
    owner.send('POST', `/api/approvals/${text.parse(id)}`, decision)
  const read = async (id: unknown) => (await owner.send('GET', `/api/approvals/${text.parse(id)}`)).body

  it('is one for a call and the request for it, whichever came first, and has the reason', async () => {
    const input = { ...transfer('6'), memo: 'Invoice 7' }
    const called = await ways.rest('wallets_transfer', { ...input, reason: 'It is due.' }, 'call-first')
    expect(called.body).toMatchObject({ code: 'approval_required' })
    const { approvalId } = called.body
    expect(await read(approvalId)).toMatchObject({ reason: 'It is due.', input: { memo: 'Invoice 7' } })
    for (const { body } of await ways.everywhere('approvals_request', (way) => ({
      operation: 'wallets.transfer',
      input,
      reason: `Asked over ${way}.`,
    })))
      expect(body).toMatchObject({ approvalId, status: 'pending', violations: [] })
    expect(await read(approvalId)).toMatchObject({ reason: 'Asked over mcp-2026.' })
    expect(await pending()).toHaveLength(1)
    const reused = await ways.rest('approvals_request', {
      operation: 'wallets.transfer',
      input: { ...transfer('7'), idempotency_key: 'call-first' },
      reason: 'Another payment.',
    })
    expect(reused.body).toMatchObject({ code: 'idempotency_key_reused' })

    expect((await decide(approvalId, { decision: 'approve' })).body).toMatchObject({
      answer: { amount: '6', status: 'confirmed' },
    })
    // The same call, explained in another way or not at all.
    const again = await ways.rest('wallets_transfer', input, 'call-first')
    expect(again).toMatchObject({ isError: false, body: { amount: '6' } })
    const { body: history } = await ways.rest('wallets_transfers_list', {})
    expect(history.transfers).toMatchObject([{ transferId: again.body.transferId, memo: 'Invoice 7' }])
    const { body: found } = await owner.send('GET', '/api/activity?search=invoice%207')
    expect(found.entries).toMatchObject([{ memo: 'Invoice 7', object: { kind: 'transfer' } }])
  })

  it('an approval that was asked for first is the one that the call gets', async () => {
    const input = transfer('6.5')
    const asked = await ways.rest('approvals_request', {
      operation: 'wallets_transfer',
      input,
      reason: 'Due today.',
    })
    const called = await ways.rest('wallets_transfer', input, 'ask-first')
    expect(called.body).toMatchObject({ code: 'approval_required', approvalId: asked.body.approvalId })
    expect(await pending()).toHaveLength(1)
    await decide(asked.body.approvalId, { decision: 'approve' })
    const repeated = await ways.rest('wallets_transfer', input, 'ask-first')
    expect(repeated).toMatchObject({ isError: false, body: { amount: '6.5' } })
    // Another key is another payment, and waits for an approval of its own.
    const next = await ways.rest('wallets_transfer', input, 'another')
    expect(next.body.approvalId).not.toBe(asked.body.approvalId)
    await ways.rest('approvals_withdraw', { id: next.body.approvalId })
  })

  it('is one for a payment, however its payee and its chain are written', async () => {
    const written = { destination: getAddress(`0x${'ab'.repeat(20)}`), amount: '41' }
    const inputs = [
      { ...written, token: 'USDC' },
      { ...written, destination: written.destination.toLowerCase(), amount: '41.00' },
      { ...written, chain: 'base-sepolia' },
    ]
    const asked = []
    for (const input of inputs)
      asked.push(
        await ways.rest('approvals_request', { operation: 'wallets.transfer', input, reason: 'Rent.' }),
      )
    const [first] = asked
    expect(asked.map(({ body }) => body.approvalId)).toEqual(asked.map(() => first?.body.approvalId))
    expect(await pending()).toHaveLength(1)
    await ways.rest('approvals_withdraw', { id: first?.body.approvalId })
  })

  it('an approval of a change that conflicts with what holds by now ends with the reason', async () => {
    const before = z
      .looseObject({ policy: z.looseObject({}) })
      .parse((await owner.send('GET', `/api/agents/keys/${keyId}`)).body).policy
    const asked = await ways.rest('approvals_request', {
      operation: 'agents.policy',
      input: { policy: { ...before, dailyBudget: { max: '90' } } },
      reason: 'More to pay this week.',
    })
    const tighter = { ...before, perTransaction: { max: '39' } }
    expect((await owner.send('PATCH', `/api/agents/keys/${keyId}`, { policy: tighter })).status).toBe(200)
    const ended = { status: 'approved', answer: null, problem: { code: 'conflict' } }
    const decided = await decide(asked.body.approvalId, { decision: 'approve' })
    expect(decided).toMatchObject({ status: 200, body: ended })
    expect(await read(asked.body.approvalId)).toMatchObject(ended)
    expect((await owner.send('PATCH', `/api/agents/keys/${keyId}`, { policy: before })).status).toBe(200)
  })

  it('says what uses up a budget, to the agent and to its owner, and is rejected with a note', async () => {
    const input = transfer('55')
    const nameKey = (way: string) => `too-much-${way}`
    for (const { body } of await ways.everywhere('wallets_transfer', () => input, nameKey))
      expect(body).toMatchObject({ code: 'policy_denied', violations: [{ rule: 'per_transaction' }, {}] })
    const asked = await ways.rest('approvals_request', {
      operation: 'wallets.transfer',
      input: { ...input, idempotency_key: 'too-much-rest' },
      reason: 'The deposit of the flat.',
    })
    const usesUp = [{ period: 'day', left: '47.5', resetsAt: expect.any(String) }]
    expect(asked.body).toMatchObject({ status: 'pending', usesUp })
    expect(await read(asked.body.approvalId)).toMatchObject({ usesUp })
    const waiting = await ways.rest('wallets_transfer', input, 'too-much-rest')
    expect(waiting.body).toMatchObject({ code: 'policy_denied', approvalId: asked.body.approvalId })
    await decide(asked.body.approvalId, { decision: 'reject', note: 'Not before June.' })
    const refusal = { code: 'approval_rejected', note: 'Not before June.', approvalId: asked.body.approvalId }
    const again = await ways.everywhere(
      'wallets_transfer',
      () => input,
      () => 'too-much-rest',
    )
    for (const { isError, body } of again) {
      expect(isError).toBe(true)
      expect(body).toMatchObject({ ...refusal, status: 403 })
    }
    const asking = { operation: 'wallets.transfer', input, reason: 'Please!' }
    for (const { body } of await ways.everywhere('approvals_request', () => asking))
      expect(body).toMatchObject(refusal)
    expect(await pending()).toEqual([])
  })

  it('an approval that the policy requires is rejected with its note, too, and a new key asks anew', async () => {
    const called = await ways.rest('wallets_transfer', transfer('8'), 'no')
    await decide(called.body.approvalId, { decision: 'reject', note: 'Wrong invoice.' })
    const same = await ways.everywhere(
      'wallets_transfer',
      () => transfer('8'),
      () => 'no',
    )
    for (const { body } of same)
      expect(body).toMatchObject({ code: 'approval_rejected', note: 'Wrong invoice.' })
    const anew = await ways.rest('wallets_transfer', transfer('8'), 'yes')
    expect(anew.body).toMatchObject({ code: 'approval_required' })
    const waiting = await ways.everywhere(
      'wallets_transfer',
      () => transfer('8'),
      () => 'yes',
    )
    const expectPolling = (where: string) =>
      expect.stringContaining(`Then poll ${where}, or repeat the call with the same idempotency key.`)
    expect(waiting.map(({ body }) => body.hint)).toEqual([
      expectPolling('GET /api/approvals/{approvalId}'),
      expectPolling('approvals_get'),
      expectPolling('approvals_get'),
    ])
    await ways.rest('approvals_withdraw', { id: anew.body.approvalId })
  })

  it('an approval of a change is made by the owner, once, as it was asked for', async () => {
    const limits = { limits: { daily: '400' } }
    const own = await ways.rest('cards_update', { cardId, ...limits })
    expect(own.isError).toBe(true)
    const [first, ...others] = await ways.everywhere('approvals_request', () => ({
      operation: 'cards.update',
      input: { cardId, ...limits },
      reason: 'The flight costs 380.',
    }))
    expect(first?.body).toMatchObject({ status: 'pending', violations: [], usesUp: [] })
    for (const { body } of others) expect(body.approvalId).toBe(first?.body.approvalId)
    expect(await read(first?.body.approvalId)).toMatchObject({ decisionId: null, operation: 'cards.update' })
    const done = await decide(first?.body.approvalId, { decision: 'approve' })
    expect(done.body).toMatchObject({ status: 'approved', answer: { limits: { daily: '400' } } })
    const { body: journal } = await owner.send('GET', '/api/security/journal')
    expect(JSON.stringify(journal)).toMatch(
      /approval\.approved.*card\.updated|card\.updated.*approval\.approved/,
    )
  })

  it('an approval of another policy is for the asking key alone, and nothing but the policy', async () => {
    const policy = {
      perTransaction: { max: '45' },
      dailyBudget: { max: '70' },
      categories: { allow: ['transfer'] },
    }
    const ask = (input: object) =>
      ways.everywhere('approvals_request', () => ({ operation: 'agents.policy', input, reason: 'More.' }))
    for (const { body } of await ask({ policy, scopes: ['cards:write'] }))
      expect(body).toMatchObject({ code: 'invalid_request', issues: [{ path: 'input.scopes' }] })
    const [asked] = await ask({ policy })
    expect(asked?.body).toMatchObject({ status: 'pending' })
    expect(await read(asked?.body.approvalId)).toMatchObject({ input: { id: keyId, policy } })
    const refused = await ways.rest('approvals_get', { id: asked?.body.approvalId })
    expect(refused.body).toMatchObject({ status: 'pending' })
    await decide(asked?.body.approvalId, { decision: 'approve' })
    const { body } = await owner.send('GET', `/api/agents/keys/${keyId}`)
    expect(body).toMatchObject({ policy: { perTransaction: { max: '45' } } })
  })

  it('is asked for by the operations of the schema: every spend of a key, and the changes', async () => {
    const spends = tools.filter(({ effect, mcp }) => effect === 'spend' && mcp).map(({ name }) => name)
    expect([...approvableOperations].sort()).toEqual([...spends, 'cards.update', 'agents.policy'].sort())
    const { tools: offered } = await ways.modern.listTools()
    const { properties } = z
      .looseObject({ properties: z.looseObject({ operation: z.looseObject({ enum: z.array(z.string()) }) }) })
      .parse(offered.find(({ name }) => name === 'approvals_request')?.inputSchema)
    expect(properties.operation.enum).toEqual([...approvableOperations])
    for (const { name, inputSchema } of offered.filter(({ name }) =>
      spends.includes(name.replaceAll('_', '.')),
    ))
      expect([name, Object.keys(inputSchema.properties ?? {})]).toEqual([
        name,
        expect.arrayContaining(['reason']),
      ])
  })
})
