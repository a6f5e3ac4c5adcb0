/** States of cards at the processor, which is as strict as Lithic's documentation. */
import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import { silentLog } from '../../../src/core/base/log.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import type { Tool } from '../../../src/kernel/tool.ts'
import { createLithicProcessor } from '../../../src/providers/card-processor/lithic.ts'
import { sendCardStates } from '../../../src/rails/cards/send-states.ts'
import issue from '../../../tools/cards/issue.ts'
import settings from '../../../tools/cards/settings.ts'
import update from '../../../tools/cards/update.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, newPerson, servicesOn } from '../../kernel/scene.ts'
import { movedClock } from '../../rails/investing/scene.ts'

const quiet = new AbortController().signal
const change = z.strictObject({ state: z.enum(['OPEN', 'PAUSED', 'CLOSED']) })

onBothEngines('states of cards at the processor', (database) => {
  const states = new Map<string, string>()
  const patches: string[] = []
  let isLost = false
  let server: Server
  let services: Services
  const clock = movedClock()
  beforeAll(async () => {
    server = createServer(async (request, response) => {
      const token = decodeURIComponent((request.url ?? '').replace('/v1/cards/', ''))
      const answer = (status: number, body: object) =>
        void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      if (request.headers.authorization !== 'key') return answer(401, {})
      await changeOrRead(request.method ?? '', { token, body: await text(request), answer, response })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    // A listening server has an address object with a port.
    const { port } = server.address() as AddressInfo
    const lithic = createLithicProcessor({
      ...{ url: `http://127.0.0.1:${port}`, apiKey: 'key', log: silentLog },
      ...{ secretsAt: () => [], eventSecretsAt: () => [] },
    })
    const sandbox = await servicesOn(database(), { clock })
    services = { ...sandbox, cardProcessor: { ...sandbox.cardProcessor, setStatus: lithic.setStatus } }
  })
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })
  beforeEach(() => {
    patches.length = 0
    isLost = false
  })

  async function changeOrRead(
    method: string,
    {
      token,
      body,
      answer,
      response,
    }: {
      token: string
      body: string
      answer: (status: number, body: object) => void
      response: ServerResponse
    },
  ): Promise<void> {
    const state = states.get(token)
    if (state === undefined) return answer(404, { message: 'card not found' })
    if (method === 'GET') return answer(200, { token, state })
    const asked = change.safeParse(JSON.parse(body))
    if (method !== 'PATCH' || !asked.success) return answer(400, { message: 'invalid' })
    if (state === 'CLOSED') return answer(400, { message: 'a closed card cannot be changed' })
    states.set(token, asked.data.state)
    patches.push(asked.data.state)
    if (isLost) response.destroy()
    else answer(200, { token, state: asked.data.state })
  }

  const newCard = async () => {
    const person = await newPerson(database())
    const principal = { ...person, session: { ...person.session, steppedUpAt: clock() } }
    const call = async (tool: Tool, input: object) =>
      (await run(tool, buildCall(services, principal, { now: clock() }), input)).body
    const { id } = await call(issue, {})
    states.set(String(id), 'OPEN')
    return {
      id: String(id),
      freeze: (isFrozen: boolean) => call(settings, { cardId: id, freeze: isFrozen }),
      cancel: () => call(update, { cardId: id, status: 'canceled' }),
    }
  }
  const round = () => {
    clock.forward(13_000)
    return sendCardStates(services, quiet)
  }

  it('follow freezing, unfreezing and canceling, each told once', async () => {
    const card = await newCard()
    await card.freeze(true)
    await round()
    expect(states.get(card.id)).toBe('PAUSED')
    await round()
    await card.freeze(false)
    await round()
    expect(states.get(card.id)).toBe('OPEN')
    await card.cancel()
    await round()
    await round()
    expect(patches).toEqual(['PAUSED', 'OPEN', 'CLOSED'])
  })

  it('are told again at once when a card changes right after a successful try', async () => {
    const card = await newCard()
    await card.freeze(true)
    await round()
    await card.freeze(false)
    clock.forward(1_000)
    expect(await sendCardStates(services, quiet)).toBe(1)
    expect(states.get(card.id)).toBe('OPEN')
  })

  it('are told again until they are confirmed, and never earlier than a request takes', async () => {
    const card = await newCard()
    await card.cancel()
    isLost = true
    await round()
    isLost = false
    clock.forward(1_000)
    expect(await sendCardStates(services, quiet)).toBe(0)
    // The card is closed already, and the second request is refused: its state is read.
    expect(await round()).toBe(1)
    expect(await round()).toBe(0)
    expect([states.get(card.id), patches]).toEqual(['CLOSED', ['CLOSED']])
  })

  it('states of a card that the processor does not know do not block the others', async () => {
    const [unknown, known] = [await newCard(), await newCard()]
    states.delete(unknown.id)
    await unknown.freeze(true)
    await known.freeze(true)
    await round()
    expect(states.get(known.id)).toBe('PAUSED')
    expect(await round()).toBe(1)
    await unknown.freeze(false)
  })
})
