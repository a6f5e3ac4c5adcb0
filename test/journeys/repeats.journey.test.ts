/** An agent in a loop: it makes the same payment again and again, is stopped, and goes on when its owner says so. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { callMcp, connectMcp } from '../mcp/client.ts'
import { sharedGateway } from './gateway.ts'
import { newGuest, requestJson } from './people.ts'

const origin = sharedGateway()
const destination = `0x${'7'.repeat(40)}`

async function newScene(repeatLimit = { count: 5, perSec: 600 }) {
  const owner = await newGuest(origin)
  const { body } = await owner.send('POST', '/api/developer/keys', {
    name: 'Loop bot',
    scopes: ['wallets:read', 'wallets:transfer', 'agents:delegate'],
    policy: {
      perTransaction: { max: '5' },
      dailyBudget: { max: '100' },
      categories: { allow: ['transfer'] },
      repeatLimit,
    },
  })
  const { key, id } = z.looseObject({ key: z.string(), id: z.string() }).parse(body)
  const pay = (amount = '1', secret = key) =>
    requestJson(origin, 'POST', '/api/wallets/transfer', {
      body: { destination, amount },
      headers: { authorization: `Bearer ${secret}`, 'idempotency-key': crypto.randomUUID() },
    })
  return { owner, key, id, pay }
}

it('is stopped at the sixth, whoever asks, and resumed by an approval', async () => {
  const { owner, key, id, pay } = await newScene()
  const answers = await Promise.all(Array.from({ length: 9 }, () => pay()))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(5)
  const refused = answers.filter(({ status }) => status !== 200)
  expect(refused.map(({ body }) => body.code)).toEqual(Array(4).fill('policy_denied'))
  const rules = refused.flatMap(({ body }) =>
    z
      .array(z.looseObject({ rule: z.string() }))
      .parse(body.violations)
      .map(({ rule }) => rule),
  )
  expect(rules).toContain('repeat_limit')

  const { body: problem } = await pay('2')
  expect(problem).toMatchObject({
    violations: [{ rule: 'paused' }],
    approvalId: expect.stringMatching(/^appr_/),
    hint: expect.stringContaining('loops'),
  })
  const approvalId = String(problem.approvalId)
  const mcp = await connectMcp(origin, { requestInit: { headers: { authorization: `Bearer ${key}` } } })
  const overMcp = await callMcp(mcp, 'wallets_transfer', {
    destination,
    amount: '1',
    idempotency_key: 'again',
  })
  expect(overMcp).toMatchObject({ isError: true })
  expect(JSON.stringify(overMcp)).toContain(approvalId)
  await mcp.close()

  const { body: listed } = await owner.send('GET', '/api/approvals?status=pending')
  expect(listed.approvals).toMatchObject([
    { approvalId, agentId: id, operation: 'agents.resume', input: { id, status: 'active' } },
  ])
  const { body: agent } = await owner.send('GET', `/api/agents/keys/${id}`)
  expect(agent).toMatchObject({ status: 'paused', pausedAt: expect.any(String) })
  const approved = await owner.send('POST', `/api/approvals/${approvalId}`, { decision: 'approve' })
  expect(approved).toMatchObject({ status: 200, body: { status: 'approved', answer: { status: 'active' } } })
  for (let time = 0; time < 5; time += 1) expect((await pay()).status).toBe(200)
  expect(await pay()).toMatchObject({
    status: 403,
    body: { approvalId: expect.not.stringContaining(approvalId) },
  })
})

it('stays stopped when its owner says no, and cannot ask to be resumed', async () => {
  const { owner, pay, key } = await newScene({ count: 1, perSec: 60 })
  expect((await pay()).status).toBe(200)
  const { body: problem } = await pay()
  const { status } = await owner.send('POST', `/api/approvals/${String(problem.approvalId)}`, {
    decision: 'reject',
  })
  expect(status).toBe(200)
  expect(await pay()).toMatchObject({
    status: 403,
    body: { violations: [{ rule: 'repeat_limit' }, { rule: 'paused' }] },
  })
  const asked = await requestJson(origin, 'POST', '/api/approvals', {
    body: { operation: 'agents.resume', input: {}, reason: 'Let me go on.' },
    headers: { authorization: `Bearer ${key}` },
  })
  expect(asked).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
})

it('is stopped below another key alone, which goes on', async () => {
  const { key, pay } = await newScene({ count: 2, perSec: 600 })
  const { body: child } = await requestJson(origin, 'POST', '/api/agents/delegations', {
    body: {
      name: 'Child',
      scopes: ['wallets:transfer'],
      policy: {
        perTransaction: { max: '5' },
        dailyBudget: { max: '50' },
        categories: { allow: ['transfer'] },
      },
      expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
      bearer: true,
    },
    headers: { authorization: `Bearer ${key}` },
  })
  const secret = String(child.key)
  expect([(await pay('1')).status, (await pay('1', secret)).status]).toEqual([200, 200])
  expect(await pay('1', secret)).toMatchObject({
    status: 403,
    body: {
      violations: [{ rule: 'repeat_limit', agentId: expect.not.stringContaining(String(child.agentId)) }],
    },
  })
  expect((await pay('2')).status).toBe(200)
  expect(await pay('2', secret)).toMatchObject({ status: 403, body: { violations: [{ rule: 'paused' }] } })
})
