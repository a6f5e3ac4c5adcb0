/** Cards for one purchase, issued by agents over HTTP and MCP, charged by the sandbox's network. */
import pg from 'pg'
import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { luhnSum } from '../../src/providers/card-processor/sandbox-number.ts'
import { postCall } from '../mcp/post-call.ts'
import { overBothEngines } from './both-engines.ts'
import { forManyTests } from './gateway.ts'
import { enrollMfa, newGuest, type Person, requestJson, requestReplayable } from './people.ts'

const credential = z.strictObject({
  pan: z.string().regex(/^4000\d{12}$/),
  cvc: z.string().regex(/^\d{3}$/),
  expMonth: z.int(),
  expYear: z.int(),
  billing: z.strictObject({
    name: z.string(),
    address: z.string().nullable(),
    country: z.string().nullable(),
  }),
})
const issued = z.looseObject({ id: z.string(), credential, singleUse: z.looseObject({}) })
const wallet = z.object({
  balances: z.array(z.object({ token: z.string(), amount: z.string(), held: z.string() })),
})

overBothEngines(
  'a card for one purchase',
  { ...forManyTests, LOG_LEVEL: 'debug' },
  ({ gateway, databaseUrl }) => {
    let owner: Person
    const seen: string[] = []
    beforeAll(async () => {
      owner = await newGuest(gateway().origin)
      await enrollMfa(owner)
    })

    const policy = (members: object = {}) => ({
      perTransaction: { max: '50' },
      dailyBudget: { max: '200' },
      categories: { allow: ['card'] },
      ...members,
    })
    const newKey = async (scopes: readonly string[], members: object = {}) => {
      const { status, body } = await owner.send('POST', '/api/developer/keys', {
        name: 'Shopper',
        scopes,
        policy: policy(members),
      })
      expect([status, body]).toEqual([200, expect.anything()])
      const headers = { authorization: `Bearer ${String(body.key)}` }
      return {
        id: String(body.id),
        secret: String(body.key),
        send: (method: string, path: string, given?: unknown, more: Record<string, string> = {}) =>
          requestReplayable(gateway().origin, method, path, {
            body: given,
            headers: { ...headers, ...more },
          }),
      }
    }
    const readIssued = (body: unknown) => {
      const card = issued.parse(body)
      seen.push(card.credential.pan)
      return card
    }
    const buy = async (cardId: string, amount: string, more: object = {}) => {
      const { body } = await requestJson(gateway().origin, 'POST', '/sandbox/authorizations', {
        body: { cardId, amount, merchant: 'Corner Shop', mcc: '5411', clear: false, ...more },
      })
      return body
    }
    const results = async (cardId: string, purchases: readonly (readonly [string, object])[]) => {
      const found = []
      for (const [amount, more] of purchases) found.push((await buy(cardId, amount, more)).result)
      return found
    }
    const readUsdc = async () => {
      const { body } = await owner.send('GET', '/api/wallets')
      const row = wallet.parse(body).balances.find(({ token }) => token === 'USDC')
      return `${row?.amount} + ${row?.held}`
    }
    const readSingleUse = async (cardId: string) => {
      const { body } = await owner.send('GET', '/api/cards')
      const cards = z.object({ cards: z.array(z.looseObject({ id: z.string() })) }).parse(body).cards
      return cards.find(({ id }) => id === cardId)
    }

    it('is issued to an agent with its number, pays once at its merchant, and ends with the clearing', async () => {
      const agent = await newKey(['cards:read', 'cards:pay'])
      const wish = {
        singleUse: { amount: '30', merchant: { mcc: '5411', name: 'corner shop', country: 'US' } },
      }
      const before = await readUsdc()
      const headers = { 'idempotency-key': 'shoes-1', 'bursar-task': 'shoes' }
      const { status, body } = await agent.send('POST', '/api/cards', wish, headers)
      expect([status, body.code]).toEqual([200, undefined])
      const card = readIssued(body)
      expect(luhnSum(card.credential.pan) % 10).toBe(0)
      expect(card.singleUse).toMatchObject({
        amount: '30',
        remaining: '30',
        merchant: { mcc: '5411', name: 'corner shop', country: 'US' },
        task: 'shoes',
        status: 'open',
      })
      const replay = await agent.send('POST', '/api/cards', wish, headers)
      expect([replay.isReplayed, replay.body.id, replay.body.credential]).toEqual([true, card.id, null])
      expect(await readUsdc()).not.toBe(before)
      expect(
        await results(card.id, [
          ['10', { merchant: 'Other Shop' }],
          ['10', { mcc: '7995' }],
          ['10', { country: 'CAN' }],
          ['31', {}],
        ]),
      ).toEqual([
        'UNAUTHORIZED_MERCHANT',
        'UNAUTHORIZED_MERCHANT',
        'UNAUTHORIZED_MERCHANT',
        'VELOCITY_EXCEEDED',
      ])
      const { token, result } = await buy(card.id, '12', { merchant: 'CORNER SHOP #12' })
      expect(result).toBe('APPROVED')
      expect(
        await results(card.id, [
          ['1', {}],
          ['8', { token }],
          ['11', { token }],
        ]),
      ).toEqual(['VELOCITY_EXCEEDED', 'APPROVED', 'VELOCITY_EXCEEDED'])
      expect(await readSingleUse(card.id)).toMatchObject({
        status: 'active',
        singleUse: { remaining: '10', status: 'authorized' },
      })
      const { body: cleared } = await requestJson(gateway().origin, 'POST', '/sandbox/authorizations', {
        body: { cardId: card.id, amount: '5', merchant: 'Corner Shop', mcc: '5411', token, clear: true },
      })
      expect(cleared).toMatchObject({ result: 'APPROVED', cleared: true })
      expect(await readSingleUse(card.id)).toMatchObject({
        status: 'canceled',
        singleUse: { remaining: '0', status: 'used' },
      })
      const { body: usage } = await owner.send('GET', `/api/agents/keys/${agent.id}/usage?by=task`)
      expect(JSON.stringify(usage)).toContain('"shoes"')
      const { body: history } = await owner.send('GET', `/api/cards/${card.id}/transactions`)
      expect(
        z.object({ transactions: z.array(z.looseObject({ status: z.string() })) }).parse(history)
          .transactions,
      ).toHaveLength(6)
      const { body: activity } = await owner.send('GET', '/api/activity?kind=card&task=shoes')
      expect(activity.entries).toMatchObject([{ agentId: agent.id, object: { kind: 'card_transaction' } }])
    }, 60_000)

    it('is issued over MCP, and canceled by its issuer alone or by the owner', async () => {
      const [agent, other] = [await newKey(['cards:pay']), await newKey(['cards:pay'])]
      await expect.poll(readUsdc, { timeout: 20_000 }).toMatch(/ \+ 0$/)
      const before = await readUsdc()
      const issue = async () => {
        const answer = await postCall(gateway().origin, agent.secret, 'cards_issue', {
          singleUse: { amount: '20' },
        })
        const text = await answer.text()
        const data = text.startsWith('{')
          ? text
          : (text
              .split('\n')
              .find((line) => line.startsWith('data: '))
              ?.slice(6) ?? '')
        const { result } = z
          .object({ result: z.object({ structuredContent: z.unknown() }) })
          .parse(JSON.parse(data))
        return readIssued(result.structuredContent)
      }
      const [first, second] = [await issue(), await issue()]
      expect((await other.send('DELETE', `/api/cards/${first.id}`)).status).toBe(404)
      const ended = await agent.send('DELETE', `/api/cards/${first.id}`)
      expect([ended.status, ended.body]).toEqual([200, { canceled: true }])
      expect(await readSingleUse(first.id)).toMatchObject({
        status: 'canceled',
        singleUse: { status: 'canceled' },
      })
      expect((await agent.send('DELETE', `/api/cards/${first.id}`)).status).toBe(409)
      expect((await owner.send('DELETE', `/api/cards/${second.id}`)).status).toBe(200)
      expect(await readUsdc()).toBe(before)
      expect(await results(second.id, [['1', {}]])).toEqual(['CARD_PAUSED'])
    }, 60_000)

    it('ends at once with the key that issued it, and returns what is not authorized', async () => {
      const agent = await newKey(['cards:pay', 'agents:delegate'])
      const { body: child } = await agent.send('POST', '/api/agents/delegations', {
        name: 'Helper',
        scopes: ['cards:pay'],
        policy: policy(),
        expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
        bearer: true,
      })
      const before = await readUsdc()
      const headers = { authorization: `Bearer ${String(child.key)}` }
      const { body } = await requestJson(gateway().origin, 'POST', '/api/cards', {
        headers,
        body: { singleUse: { amount: '40' } },
      })
      const card = readIssued(body)
      expect((await owner.send('DELETE', `/api/developer/keys/${agent.id}`)).status).toBe(200)
      expect(await results(card.id, [['1', {}]])).toEqual(['CARD_PAUSED'])
      expect(await readSingleUse(card.id)).toMatchObject({
        status: 'canceled',
        singleUse: { status: 'canceled' },
      })
      expect(await readUsdc()).toBe(before)
    }, 60_000)

    it('needs its own scope, a possible end and an amount that the policy allows', async () => {
      const [agent, standing] = [await newKey(['cards:pay']), await newKey(['cards:write'])]
      const singleUse = { amount: '20' }
      const ask = async (key: Awaited<ReturnType<typeof newKey>>, given: object) => {
        const { status, body } = await key.send('POST', '/api/cards', given)
        return [status, body.code]
      }
      expect(await ask(agent, {})).toEqual([403, 'insufficient_scope'])
      expect(await ask(standing, { singleUse })).toEqual([403, 'insufficient_scope'])
      expect(await ask(agent, { singleUse: { amount: '51' } })).toEqual([403, 'policy_denied'])
      for (const wrong of [
        { singleUse, limits: { daily: '10' } },
        { singleUse: { amount: '0' } },
        { singleUse: { ...singleUse, merchant: { name: '!' } } },
        { singleUse: { ...singleUse, merchant: { country: 'XX' } } },
        { singleUse: { ...singleUse, expiresAt: new Date(Date.now() + 8 * 86_400_000).toISOString() } },
        { singleUse: { ...singleUse, expiresAt: new Date(Date.now() - 1000).toISOString() } },
      ])
        expect(await ask(agent, wrong)).toEqual([400, 'invalid_request'])
    })

    it('is issued after its owner has approved it, and its number stands in no approval', async () => {
      const agent = await newKey(['cards:pay'], { approval: { above: '10' } })
      const asked = await agent.send('POST', '/api/cards', { singleUse: { amount: '20' }, reason: 'A book.' })
      expect([asked.status, asked.body.code]).toEqual([403, 'approval_required'])
      const id = String(asked.body.approvalId)
      expect((await owner.send('POST', `/api/approvals/${id}`, { decision: 'approve' })).status).toBe(200)
      const { body } = await agent.send('GET', `/api/approvals/${id}`)
      expect(body).toMatchObject({
        status: 'approved',
        answer: { status: 'active', singleUse: { status: 'open' } },
      })
      expect(JSON.stringify(body)).not.toMatch(/4000\d{12}/)
    })

    it('leaves its number in no table and no line of the log', async () => {
      expect(seen.length).toBeGreaterThan(3)
      const found: string[] = seen.filter((pan) => gateway().output().includes(pan))
      const url = databaseUrl()
      if (url !== null) {
        const client = new pg.Client({ connectionString: url })
        await client.connect()
        try {
          const { rows: tables } = await client.query<{ name: string }>(
            "select table_name as name from information_schema.tables where table_schema = current_schema() and table_type = 'BASE TABLE'",
          )
          expect(tables.length).toBeGreaterThan(20)
          for (const { name } of tables) {
            const { rows } = await client.query<{ text: string }>(`select t::text as text from "${name}" t`)
            for (const { text } of rows)
              found.push(...seen.filter((pan) => text.includes(pan)).map((pan) => `${name} ${pan}`))
          }
        } finally {
          await client.end()
        }
      }
      expect(found).toEqual([])
    })
  },
)
