/** Rate limits of a key, an account and what stops money, whoever else sends requests. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { tools } from '../../../tools/index.ts'
import { overBothEngines } from '../../journeys/both-engines.ts'
import { requestJson } from '../../journeys/people.ts'

const env = {
  TRUSTED_PROXIES: '127.0.0.0/8',
  RATE_MUTATIONS: '20/60',
  RATE_KEY: '3/60',
  RATE_ACCOUNT: '5/60',
  RATE_AUTHORIZATIONS: '1/60',
  RATE_STOPS: '40/60',
}

overBothEngines('the limits of callers', env, ({ gateway }) => {
  let addresses = 0
  /** An address that no other request came from. */
  const newAddress = () => {
    addresses += 1
    return `203.0.113.${addresses}`
  }
  const send = (method: string, path: string, token?: string, from = newAddress(), body: unknown = {}) => {
    const headers = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      'x-forwarded-for': from,
    }
    return requestJson(gateway().origin, method, path, { body, headers })
  }
  const statuses = async (times: number, request: () => Promise<{ status: number }>) => {
    const found: number[] = []
    for (let at = 0; at < times; at += 1) found.push((await request()).status)
    return found
  }
  const newPerson = async () => {
    const { body } = await send('POST', '/api/auth/guest')
    return z.object({ sessionToken: z.string() }).parse(body).sessionToken
  }
  const newKey = async (owner: string) => {
    const { body } = await send('POST', '/api/developer/keys', owner, newAddress(), {
      name: 'K',
      scopes: ['swaps:quote'],
    })
    return z.string().parse(body.key)
  }
  const order = (token: string, from?: string) => send('POST', '/api/swaps', token, from)

  it('apply to a key, to all keys of its account together, and to its owner apart from them', async () => {
    const owner = await newPerson()
    const [one, other] = [await newKey(owner), await newKey(owner)]
    // What its own limit refuses counts nowhere else: of five requests of all keys, two are left.
    expect(await statuses(20, () => order(one))).toEqual([400, 400, 400, ...Array(17).fill(429)])
    expect(await statuses(3, () => order(other))).toEqual([400, 400, 429])
    // The owner has made two requests, and none of those of the keys.
    expect(await statuses(4, () => order(owner))).toEqual([400, 400, 400, 429])
    expect((await order(await newKey(await newPerson()))).status).toBe(400)
  })

  it('refund the address what the limit of the key, or of the operation, refuses', async () => {
    const [key, address] = [await newKey(await newPerson()), newAddress()]
    await statuses(30, () => order(key, address))
    expect(await statuses(17, () => send('POST', '/api/nowhere', undefined, address))).toEqual(
      Array(17).fill(404),
    )
    expect((await send('POST', '/api/nowhere', undefined, address)).status).toBe(429)
  })

  it('refuse no operation that stops money, whatever others have used up', async () => {
    const [home, owner] = [newAddress(), await newPerson()]
    const key = await newKey(owner)
    // A key and strangers at the owner's address, and a thief of the session, keep asking.
    await statuses(10, () => order(key, home))
    await statuses(30, () => send('POST', '/api/nowhere', undefined, home))
    await statuses(10, () => order(owner))
    const withdraw = () => send('DELETE', '/api/approvals/appr_01h455vb4pex5vsknk084sn02q', key, home)
    expect((await statuses(50, withdraw)).slice(39)).toEqual([404, ...Array(10).fill(429)])
    const stopping = tools.filter(({ stops }) => stops === true)
    expect(stopping.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        'agents.pause',
        'agents.keys.remove',
        'cards.settings',
        'security.lock',
        'auth.logout',
      ]),
    )
    const isLast = ({ name }: { name: string }) => name === 'security.lock'
    for (const { name, route, example } of [
      ...stopping.filter((tool) => !isLast(tool) && tool.name !== 'auth.logout'),
      ...stopping.filter(isLast),
    ]) {
      const [method = '', path = ''] = route.split(' ')
      const given = z.record(z.string(), z.unknown()).parse(example)
      const at = path.replace(/\{(\w+)\}/, (_, member) => String(given[member]))
      const { status } = await send(method, at, owner, home, given)
      expect([name, status]).not.toEqual([name, 429])
      expect([name, status]).not.toEqual([name, 503])
    }
    // The lock worked, and what is not a stop was refused throughout.
    expect((await send('POST', '/api/agents/pause', owner)).status).toBe(423)
    expect((await order(await newPerson(), home)).status).toBe(429)
  })

  it('count requests to stop without a valid credential by address', async () => {
    const address = newAddress()
    const pause = () => send('POST', '/api/agents/pause', 'bsk_sandbox_x', address)
    expect(await statuses(21, pause)).toEqual([...Array(20).fill(401), 429])
  })

  it('count an IPv6 /48 too, sixteen times as much as a /64', async () => {
    const from = (at: number) => send('POST', '/api/nowhere', undefined, `2001:db8:7:${at.toString(16)}::1`)
    const answers = await Promise.all(Array.from({ length: 340 }, (_, at) => from(at)))
    expect(answers.filter(({ status }) => status === 404)).toHaveLength(320)
    expect((await send('POST', '/api/nowhere', undefined, '2001:db8:8::1')).status).toBe(404)
  })
})

it('include every operation that stops or ends something of an account', () => {
  const words = /\.(pause|remove|revoke|lock|reject|cancel|withdraw|logout|decide|update|settings|set)$/
  const elsewhere = [
    // These end or change what moves no money, and lets nobody in.
    'admin.kyc.decide',
    'admin.reviews.decide',
    'admin.travel_rules.decide',
    'contacts.update',
    'notifications.channels.remove',
    'notifications.settings.update',
    'notifications.subscriptions.remove',
    'webhook_endpoints.remove',
    'webhook_endpoints.update',
  ]
  const unmarked = tools.filter(
    ({ name, stops, effect }) => effect !== 'read' && words.test(name) && stops !== true,
  )
  expect(unmarked.map(({ name }) => name).sort()).toEqual(elsewhere)
})
