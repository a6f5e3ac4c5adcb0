import { once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { IVMS101_2023Schema } from 'ivms101'
import { beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { openAlarms, resolveAlarm } from '../../../src/books/alarms/alarms.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { createHttpTravelRule } from '../../../src/providers/travel-rule-network/http.ts'
import { createSandboxTravelRule } from '../../../src/providers/travel-rule-network/sandbox.ts'
import { notifyInstitutions } from '../../../src/server/jobs/notify-institutions.ts'
import erase from '../../../tools/compliance/personal-data/erase.ts'
import read from '../../../tools/compliance/travel-rules/get.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import { newPayer, outsideAddress, type Payer, reviewFor } from '../../tools/compliance/scene.ts'

const after = (seconds: number) => new Date(noon.getTime() + seconds * 1_000)
const never = new AbortController().signal

onBothEngines('the beneficiary’s institution', (database) => {
  let services: Services
  let payer: Payer
  let now = noon
  const round = (seconds: number, changes: Partial<Services> = {}) => {
    now = after(seconds)
    return notifyInstitutions({ ...services, ...changes }, never)
  }
  const disclose = async (vasp: string | undefined, amount = '1500') => {
    const beneficiary = { name: 'Grace Hopper', ...(vasp === undefined ? {} : { vasp }) }
    return String((await payer.disclose({ amount, beneficiary })).id)
  }
  const readState = async (id: string) => (await payer.call(read, { id })).body
  const send = (seconds: number, amount = '1500') => payer.send({ amount }, { at: after(seconds) })

  beforeAll(async () => {
    const clock = () => now
    services = { ...(await servicesOn(database())), clock, travelRuleNetwork: createSandboxTravelRule(clock) }
  })
  beforeEach(async () => {
    now = noon
    payer = await newPayer(services)
  })

  it('gets the data, accepts after a moment, and the transfer uses the accepted data', async () => {
    const id = await disclose('Some Exchange')
    expect(await readState(id)).toEqual({ id, status: 'required', answer: null, sentAt: null })
    await expect(send(0)).rejects.toMatchObject({
      ...reviewFor('travel_rule'),
      members: { hint: expect.stringContaining('wait ten seconds') },
    })
    await round(1)
    expect(await readState(id)).toMatchObject({ status: 'sent', sentAt: after(1).toISOString() })
    await Promise.all([round(3), round(3)])
    expect(await readState(id)).toMatchObject({ status: 'accepted' })
    expect((await send(3)).body).toMatchObject({ status: 'confirmed' })
  })

  it('is ignored when it answers another message, and is not contacted again until a person clears it', async () => {
    const id = await disclose('Some Exchange')
    await round(1)
    let requestCount = 0
    const { send: sendToInstitution } = createSandboxTravelRule(() => now)
    const read = async () => {
      requestCount += 1
      return { reference: 'accepting.of-another', status: 'accepted', reason: null } as const
    }
    for (const seconds of [3, 10, 60])
      await round(seconds, { travelRuleNetwork: { send: sendToInstitution, read } })
    expect(requestCount).toBe(1)
    expect(await readState(id)).toMatchObject({ status: 'sent' })
    const raised = (await openAlarms(database())).filter(({ objectId }) => objectId === id)
    expect(raised).toMatchObject([{ domain: 'compliance', reason: 'another_message', times: 1 }])
    const resolution = { by: payer.accountId, note: 'The network has corrected it.', at: now }
    const name = { domain: 'compliance', objectId: id, reason: 'another_message' } as const
    await resolveAlarm(database(), { ...name, ...resolution })
    await round(120)
    expect(await readState(id)).toMatchObject({ status: 'accepted' })
  })

  it('declines, and the transfer is blocked until other data is accepted', async () => {
    const id = await disclose('Declining Bank')
    await round(1)
    await round(3)
    expect(await readState(id)).toMatchObject({
      status: 'declined',
      answer: 'The beneficiary is unknown.',
    })
    for (const seconds of [3, 800])
      await expect(send(seconds)).rejects.toMatchObject({
        ...reviewFor('travel_rule'),
        members: { hint: expect.stringContaining('declined') },
      })
    await disclose('Some Exchange')
    await round(4)
    await round(6)
    await send(6)
  })

  it('declines an address, which neither silence nor another amount circumvents', async () => {
    await disclose('Declining Bank')
    await round(1)
    await round(3)
    await disclose(undefined)
    await disclose(undefined, '1600')
    await disclose('Silent Bank')
    await round(4)
    for (const amount of ['1500', '1600'])
      await expect(send(800, amount)).rejects.toMatchObject({
        ...reviewFor('travel_rule'),
        members: { hint: expect.stringContaining('vasp') },
      })
    await disclose('Some Exchange', '1700')
    await round(5)
    await round(7)
    await send(7, '1700')
    // Without the holder's name, nobody vouches for the originator.
    await payer.call(erase, {})
    await expect(disclose(undefined)).rejects.toMatchObject({ code: 'kyc_required' })
  })

  it('does not answer, and the wait is bounded', async () => {
    const id = await disclose('Silent Bank')
    await round(1)
    await round(9)
    await expect(send(9)).rejects.toMatchObject(reviewFor('travel_rule'))
    await send(10)
    await round(800)
    expect(await readState(id)).toMatchObject({ status: 'sent' })
  })

  it('gets no optional or erased data, and none about a person’s own wallet', async () => {
    const sentNames: string[] = []
    const { travelRuleNetwork } = services
    if (travelRuleNetwork === null) throw new Error('the sandbox has a network')
    const watched = {
      ...travelRuleNetwork,
      send: (message: Parameters<typeof travelRuleNetwork.send>[0]) => {
        sentNames.push(message.id)
        return travelRuleNetwork.send(message)
      },
    }
    const [small, own, erased] = [
      await disclose('Bank', '10'),
      await disclose(undefined),
      await disclose('Bank'),
    ]
    await payer.call(erase, {})
    await round(1, { travelRuleNetwork: watched })
    expect(sentNames.filter((id) => [small, own, erased].includes(id))).toEqual([])
  })

  it('gets the data once over HTTP, in the documented shape, despite failed attempts', async () => {
    const seen: { path: string; key: unknown; body: string }[] = []
    let answer: { status: number; body: object } = { status: 503, body: {} }
    const server = createServer(async (request, response) => {
      const { url: path = '', headers } = request
      seen.push({ path, key: headers['idempotency-key'] ?? headers.authorization, body: await text(request) })
      response.writeHead(answer.status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(answer.body))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close().closeAllConnections())
    const { port } = z.object({ port: z.int() }).parse(server.address())
    const network = createHttpTravelRule({ url: `http://127.0.0.1:${port}/`, apiKey: 'k' })
    const live = { travelRuleNetwork: network }
    // Data of earlier tests is not sent to this network.
    await database().kysely.updateTable('travel_rule').set({ vasp_name: null }).execute()
    const id = await disclose('Some Exchange')
    await round(1, live)
    answer = { status: 200, body: { reference: 'a/b', status: 'accepted' } }
    await round(3, live)
    expect(await readState(id)).toMatchObject({ status: 'required', sentAt: null })
    answer = { status: 202, body: { reference: 'ref-1', status: 'sent' } }
    await round(5, live)
    expect(await readState(id)).toMatchObject({ status: 'sent' })
    answer = { status: 200, body: { reference: 'ref-1', status: 'declined', reason: 'Unknown person.' } }
    await round(7, live)
    await round(9, live)
    expect(await readState(id)).toMatchObject({ status: 'declined', answer: 'Unknown person.' })
    expect(seen.map(({ path, key }) => [path, key])).toEqual([
      ['/transfers', id],
      ['/transfers', id],
      ['/transfers', id],
      ['/transfers/ref-1', 'Bearer k'],
    ])
    const sent = z.looseObject({ ivms101: z.unknown() }).parse(JSON.parse(seen[0]?.body ?? '{}'))
    expect(sent).toMatchObject({
      id,
      beneficiaryVASP: { name: 'Some Exchange', lei: null },
      asset: 'USDC',
      amount: '1500',
      chain: 'base-sepolia',
      destination: outsideAddress,
    })
    expect(IVMS101_2023Schema.safeParse(sent.ivms101).success).toBe(true)
  })
})
