/** What a newcomer sends first: a repeated sample pays once, and what pays again says so. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { sharedGateway } from '../../journeys/gateway.ts'
import { newGuest, requestJson } from '../../journeys/people.ts'

const destination = '0x00000000000000000000000000000000000A11cE'

describe('the first requests of a newcomer', () => {
  const origin = sharedGateway()

  const demoKey = async () => {
    const { body } = await requestJson(origin, 'GET', '/sandbox/credentials')
    return z.object({ demoApiKey: z.string() }).parse(body).demoApiKey
  }
  const send = async (headers: Record<string, string> = {}) =>
    fetch(`${origin}/api/wallets/transfer`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await demoKey()}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ destination, amount: '0.01' }),
    })

  it('say that a spend without an Idempotency-Key pays again when it is repeated', async () => {
    const first = await send()
    expect([first.status, first.headers.get('bursar-hint')]).toEqual([
      200,
      'no Idempotency-Key; a repeat pays again',
    ])
    const named = await send({ 'idempotency-key': 'first-samples' })
    expect([named.status, named.headers.get('bursar-hint')]).toEqual([200, null])
    const again = await send({ 'idempotency-key': 'first-samples' })
    expect([await again.text(), again.headers.get('idempotency-replayed')]).toEqual([
      await named.text(),
      'true',
    ])
  })

  it('need a signature where a person sends money', async () => {
    const guest = await newGuest(origin)
    const transfer = { destination, amount: '0.01' }
    expect(await guest.send('POST', '/api/wallets/transfer', transfer)).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', issues: [{ path: 'signature', message: 'is required' }] },
    })
    const signed = { ...transfer, signature: 'sandbox' }
    expect(await guest.send('POST', '/api/wallets/transfer', signed)).toMatchObject({
      status: 200,
      body: { authorization: 'sandbox' },
    })
  })

  it('have their members in the body alone', async () => {
    const guest = await newGuest(origin)
    const signed = { destination, amount: '0.01', signature: 'sandbox' }
    expect(await guest.send('POST', '/api/wallets/transfer?chain=base', signed)).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', issues: [{ path: 'chain' }] },
    })
    for (const query of ['session_id=a&sig=b', 'totp=123456', 'code=123456', 'signature_input=x'])
      expect(await guest.send('POST', `/api/wallets/transfer?${query}`, signed)).toMatchObject({
        status: 400,
        body: { code: 'credential_in_query' },
      })
  })

  it('find the guides as Markdown by /llms.txt', async () => {
    const text = await (await fetch(`${origin}/llms.txt`)).text()
    expect(text).toMatch(/^# Bursar\n\n> /)
    const links = [...text.matchAll(/\]\((\S+\.md)\)/g)].map(([, link = '']) => link)
    expect(links.length).toBeGreaterThan(10)
    for (const link of links) {
      const page = await fetch(link)
      expect([link, page.status, page.headers.get('content-type')]).toEqual([
        link,
        200,
        'text/markdown; charset=utf-8',
      ])
      expect(await page.text()).toMatch(/^# /)
    }
    expect((await fetch(`${origin}/docs/nothing.md`)).status).toBe(404)
  })
})
