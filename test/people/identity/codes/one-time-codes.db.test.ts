import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { newId } from '../../../../src/core/base/ids.ts'
import { createAccount } from '../../../../src/people/identity/accounts.ts'
import { parseDestination } from '../../../../src/people/identity/codes/destinations.ts'
import { findAccount } from '../../../../src/people/identity/store.ts'
import { createOutboxMessages } from '../../../../src/providers/messages/outbox.ts'
import { createRedisRateLimiter } from '../../../../src/providers/rate-limiter/redis.ts'
import type { Database } from '../../../../src/storage/database.ts'
import { onBothEngines } from '../../../engines.ts'
import { newPerson, noon } from '../../../kernel/scene.ts'
import {
  buildLimits,
  codeScene,
  countFailures,
  differentCode,
  dumpRows,
  generous,
  inSeconds,
  newMailbox,
} from '../code-scene.ts'

const refused = { code: 'unauthenticated', message: 'The code is wrong, already used or expired.' }

onBothEngines('a one-time code', (database) => {
  it('signs a new mailbox in to a new account with a wallet, and later to the same', async () => {
    const { start, verify } = await codeScene(database())
    const mailbox = newMailbox()
    const first = await verify(await start(mailbox))
    expect(first.account).toMatchObject({ displayName: 'a•••@example.com', guest: false })
    const wallet = await database()
      .kysely.selectFrom('wallet')
      .select('address')
      .where('account_id', '=', first.account.id)
      .execute()
    expect(wallet).toHaveLength(1)
    const again = await verify(await start(`  ${mailbox.toUpperCase()} `, inSeconds(61)), {
      now: inSeconds(62),
    })
    expect(again.account.id).toBe(first.account.id)
  })

  it('recognizes a phone number in any notation', async () => {
    const { start, verify, sent } = await codeScene(database())
    const first = await verify(await start('+49 1512 3456789'))
    expect(first.account.displayName).toBe('+49•••89')
    const again = await verify(await start('+4915123456789'))
    expect(again.account.id).toBe(first.account.id)
    expect(sent.map(({ destination }) => destination)).toEqual(['+4915123456789', '+4915123456789'])
    const methods = await database()
      .kysely.selectFrom('session')
      .select('method')
      .where('account_id', '=', first.account.id)
      .execute()
    expect(methods).toEqual([{ method: 'sms' }, { method: 'sms' }])
  })

  it('is not sent to satellite, premium and personal numbers', async () => {
    const { start, sent } = await codeScene(database())
    const refusedNumbers = [
      '+870773123456', // Inmarsat
      '+881612345678', // Iridium
      '+881831234567', // Globalstar
      '+88213123456', // international networks
      '+883510012345678',
      '+97912345678', // international premium
      '+80812345678', // international shared cost
      '+61147123456', // Australian satellite
      '+79541234567', // Russian satellite
      '+19002345678', // premium in North America
      '+449098790000', // premium in the United Kingdom
      '+447012345678', // personal numbers in the United Kingdom
    ]
    for (const number of refusedNumbers)
      await expect(start(number)).rejects.toMatchObject({ code: 'invalid_request' })
    expect(sent).toEqual([])
    for (const number of ['+4915123456787', '+12125550123', '+447400123456', '+61412345678', '+79161234567'])
      await expect(start(number)).resolves.toBeDefined()
  })

  it('states its purpose and lifetime, never in the subject, and binds an SMS to our pages', async () => {
    const { start, sent } = await codeScene(database())
    const { code } = await start(newMailbox())
    await start('+4915123456780')
    const [mail, sms] = sent
    expect(mail?.text).toMatch(
      new RegExp(`^${code} is your Bursar sign-in code\\..*10 minutes.*Never share it`),
    )
    expect(mail?.subject).not.toContain(code)
    expect(sms?.text.split('\n').at(-1)).toBe(`@bursar.example #${sms?.code}`)
    expect(sms?.text.length).toBeLessThanOrEqual(160)
  })

  it('is invalid after five wrong tries, even when it is entered correctly', async () => {
    const { start, verify } = await codeScene(database())
    const given = await start(newMailbox())
    for (let wrong = 0; wrong < 5; wrong += 1)
      await expect(verify({ ...given, code: differentCode(given.code) })).rejects.toMatchObject(refused)
    await expect(verify(given)).rejects.toMatchObject(refused)
  })

  it('is compared at most five times under concurrent guesses', async () => {
    const { start, verify, person } = await codeScene(database())
    const mailbox = newMailbox()
    await person(mailbox)
    const given = await start(mailbox)
    const guesses = Array.from({ length: 20 }, () => verify({ ...given, code: differentCode(given.code) }))
    const outcomes = await Promise.allSettled(guesses)
    expect(outcomes.every(({ status }) => status === 'rejected')).toBe(true)
    const { tries } = await database()
      .kysely.selectFrom('challenge')
      .select('tries')
      .where('id', '=', given.challengeId)
      .executeTakeFirstOrThrow()
    expect(tries).toBe(5)
  })

  it('signs in once when it is submitted twice concurrently', async () => {
    const { start, verify } = await codeScene(database())
    const given = await start(newMailbox())
    const outcomes = await Promise.allSettled([verify(given), verify(given), verify(given)])
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    await expect(verify(given)).rejects.toMatchObject(refused)
  })

  it('is sent again while it is open, with what is left of its ten minutes', async () => {
    const { start, verify, sent } = await codeScene(database())
    const mailbox = newMailbox()
    const first = await start(mailbox)
    const again = await start(mailbox, inSeconds(241))
    expect(again).toMatchObject({ challengeId: first.challengeId, code: first.code })
    expect(again.answer.expiresAt).toBe(first.answer.expiresAt)
    expect(sent.map(({ text }) => /\d+ minutes/.exec(text)?.[0])).toEqual(['10 minutes', '6 minutes'])
    await expect(verify(again, { now: inSeconds(242) })).resolves.toMatchObject({ account: { guest: false } })
    expect((await start(mailbox, inSeconds(243))).challengeId).not.toBe(first.challengeId)
  })

  it('is replaced after five wrong tries, and is one for each client, also under concurrent requests', async () => {
    const { start, verify } = await codeScene(database())
    const mailbox = newMailbox()
    const spoiled = await start(mailbox)
    for (let wrong = 0; wrong < 5; wrong += 1)
      await expect(verify({ ...spoiled, code: differentCode(spoiled.code) })).rejects.toMatchObject(refused)
    const mine = await start(mailbox)
    expect(mine.challengeId).not.toBe(spoiled.challengeId)
    const { hash } = await parseDestination(
      { dataKey: Buffer.from('a data key of thirty-two letters') },
      { channel: 'email', destination: mailbox },
    )
    await Promise.all(Array.from({ length: 8 }, () => start(mailbox, noon, { clientAddress: '203.0.113.9' })))
    const rows = await database().kysely.selectFrom('challenge').select(['id', 'facts']).execute()
    const open = rows.filter(({ facts }) => z.object({ hash: z.literal(hash) }).safeParse(facts).success)
    expect(open).toHaveLength(2)
    expect(open.map(({ id }) => id)).toContain(mine.challengeId)
    await expect(verify(mine)).resolves.toBeDefined()
  })

  it('expires after ten minutes, to the second', async () => {
    const { start, verify } = await codeScene(database())
    const [one, other] = [await start(newMailbox()), await start(newMailbox())]
    expect(one.answer.expiresAt).toBe(inSeconds(600).toISOString())
    await expect(verify(one, { now: inSeconds(599) })).resolves.toBeDefined()
    await expect(verify(other, { now: inSeconds(600) })).rejects.toMatchObject(refused)
  })

  it('is bound to its challenge, kind and destination', async () => {
    const { start, verify, complete } = await codeScene(database())
    const [one, other] = [await start(newMailbox()), await start(newMailbox())]
    if (one.code === other.code) return
    await expect(verify({ ...one, code: other.code })).rejects.toMatchObject(refused)
    await expect(complete(one)).rejects.toMatchObject(refused)
    await expect(verify({ ...one, challengeId: 'chal_01k00000000000000000000000' })).rejects.toMatchObject(
      refused,
    )
    await expect(verify(one)).resolves.toBeDefined()
  })

  it('never locks an account by wrong codes from unauthenticated callers', async () => {
    const { start, verify, person } = await codeScene(database())
    const mailbox = newMailbox()
    const { id } = await person(mailbox)
    for (let round = 0; round < 3; round += 1) {
      const given = await start(mailbox)
      for (let tries = 0; tries < 5; tries += 1)
        await expect(verify({ ...given, code: differentCode(given.code) })).rejects.toMatchObject(refused)
    }
    expect((await findAccount(database(), id))?.status).toBe('active')
    expect(await countFailures(database(), id)).toBe(0)
    await expect(verify(await start(mailbox))).resolves.toMatchObject({ account: { id } })
  })

  it('does not reveal whether an account exists: same answers, same messages, same limits', async () => {
    const { start, verify, person, sent } = await codeScene(database(), { rateLimits: buildLimits() })
    const [known, unknown] = [newMailbox(), newMailbox()]
    await person(known)
    const answersFor = async (mailbox: string) => {
      const given = await start(mailbox)
      const wrong = await verify({ ...given, code: differentCode(given.code) }).catch(
        (error: unknown) => error,
      )
      const soon = await start(mailbox).catch((error: unknown) => error)
      const { challengeId: _, ...answer } = given.answer
      return { answer, wrong, soon }
    }
    expect(await answersFor(known)).toEqual(await answersFor(unknown))
    const [one, other] = sent
    expect(sent).toHaveLength(2)
    expect({ ...one, destination: '', code: '', text: one?.text.slice(6) }).toEqual({
      ...other,
      destination: '',
      code: '',
      text: other?.text.slice(6),
    })
  })

  it('runs the same database queries for a wrong code, for any destination', async () => {
    const statementLog: string[] = []
    const watched: Database = {
      ...database(),
      transaction: (work) =>
        database().transaction((connection) =>
          work({
            ...connection,
            kysely: connection.kysely.withPlugin({
              transformQuery: ({ node }) => {
                statementLog.push(node.kind)
                return node
              },
              transformResult: async ({ result }) => result,
            }),
          }),
        ),
    }
    const { start, person } = await codeScene(database())
    const guess = await codeScene(watched)
    const [known, unknown] = [newMailbox(), newMailbox()]
    await person(known)
    const queriesFor = async (mailbox: string) => {
      const given = await start(mailbox)
      statementLog.length = 0
      await expect(guess.verify({ ...given, code: differentCode(given.code) })).rejects.toMatchObject(refused)
      return [...statementLog]
    }
    const queries = await queriesFor(known)
    expect(queries.length).toBeGreaterThan(0)
    expect(await queriesFor(unknown)).toEqual(queries)
  })

  it('is never stored in the clear, and neither is its destination, except in the sandbox’s outbox', async () => {
    const messages = createOutboxMessages({ database: database(), newId })
    const { start, verify, recover } = await codeScene(database(), { messages })
    const [mailbox, phone] = [newMailbox(), '+4915123456781']
    const first = await start(mailbox)
    const outbox = await database()
      .kysely.selectFrom('sandbox_message')
      .select(['code', 'destination'])
      .where('destination', '=', mailbox)
      .execute()
    const code = outbox[0]?.code ?? ''
    expect(await dumpRows(database(), ['sandbox_message'])).not.toContain(`"${code}"`)
    await verify({ ...first, code })
    await start(phone)
    await recover(mailbox)
    await start(mailbox)
    const everything = await dumpRows(database(), ['sandbox_message'])
    expect(everything).toContain('a•••@example.com')
    for (const secret of [mailbox, mailbox.slice(0, mailbox.indexOf('@')), phone, phone.slice(1)])
      expect(everything).not.toContain(secret)
    const { facts } = await database()
      .kysely.selectFrom('challenge')
      .select('facts')
      .where('id', '=', (await start(phone)).challengeId)
      .executeTakeFirstOrThrow()
    expect(facts).toEqual({
      channel: 'sms',
      codeHash: expect.stringMatching(/^[0-9a-f]{64}$/),
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      sealedCode: expect.stringMatching(/^[\w-]{46}$/),
      masked: '+49•••81',
      sealedAddress: expect.stringMatching(/^[\w-]{40,}$/),
    })
  })

  it('reports a failed delivery, and the next code works', async () => {
    const down = await codeScene(database(), {
      messages: { channels: ['email'], send: () => Promise.reject(new Error('down')) },
    })
    const mailbox = newMailbox()
    await expect(down.start(mailbox)).rejects.toThrow('down')
    const { start, verify } = await codeScene(database())
    await expect(verify(await start(mailbox))).resolves.toBeDefined()
  })
})

onBothEngines('a destination', (database) => {
  it('adds its address to the signed-in account that requests it, and signs in there', async () => {
    const { start, verify } = await codeScene(database())
    const mailbox = newMailbox()
    const ada = await newPerson(database())
    const linked = await verify(await start(mailbox), { principal: ada, link: true })
    expect(linked.account.id).toBe(ada.account.id)
    const { sid } = z
      .object({ sid: z.string() })
      .parse(JSON.parse(Buffer.from(linked.sessionToken.split('.')[1] ?? '', 'base64url').toString()))
    expect(sid).toBe(ada.session.id)
    expect((await verify(await start(mailbox))).account.id).toBe(ada.account.id)
    const again = await verify(await start(mailbox), { principal: ada, link: true })
    expect(again.account.id).toBe(ada.account.id)
  })

  it('is never added by a session alone', async () => {
    const { start, verify } = await codeScene(database())
    const planted = await newPerson(database())
    const { account } = await verify(await start(newMailbox()), { principal: planted })
    expect(account.id).not.toBe(planted.account.id)
  })

  it('cannot be added without a session, which uses up no try', async () => {
    const { start, verify } = await codeScene(database())
    const given = await start(newMailbox())
    for (let tries = 0; tries < 6; tries += 1)
      await expect(verify(given, { link: true })).rejects.toMatchObject({ code: 'unauthenticated' })
    await expect(verify(given)).resolves.toBeDefined()
  })

  it('stays with another account that has it, and still signs in there by the same code', async () => {
    const { start, verify, person } = await codeScene(database())
    const mailbox = newMailbox()
    const owner = await person(mailbox)
    const given = await start(mailbox)
    const other = await newPerson(database())
    await expect(verify(given, { principal: other, link: true })).rejects.toMatchObject({ code: 'conflict' })
    expect((await verify(given)).account.id).toBe(owner.id)
  })

  it('cannot be added to a guest', async () => {
    const { start, verify } = await codeScene(database())
    const ada = await newPerson(database())
    const guest = await createAccount(
      { database: database(), newId },
      { displayName: 'Guest', guest: true, at: noon },
    )
    await expect(
      verify(await start(newMailbox()), { principal: { ...ada, account: guest }, link: true }),
    ).rejects.toMatchObject({ code: 'conflict', members: { hint: expect.any(String) } })
  })

  it('can be added only with a fresh second factor if one is enrolled', async () => {
    const { start, verify } = await codeScene(database())
    const given = await start(newMailbox())
    const ada = await newPerson(database())
    const enrolled = { ...ada, account: { ...ada.account, mfaEnrolled: true } }
    await expect(verify(given, { principal: enrolled, link: true })).rejects.toMatchObject({
      code: 'step_up_required',
    })
    const steppedUp = { ...enrolled, session: { ...ada.session, steppedUpAt: noon } }
    await expect(verify(given, { principal: steppedUp, link: true })).resolves.toMatchObject({
      account: { id: ada.account.id },
    })
  })
})

onBothEngines('asking for a code', (database) => {
  it('is rejected within 60 s, with the seconds to wait, and not after', async () => {
    const { start } = await codeScene(database(), { rateLimits: buildLimits() })
    const mailbox = newMailbox()
    expect((await start(mailbox)).answer.resendAfter).toBe(60)
    for (const seconds of [30, 40, 59])
      await expect(start(mailbox, inSeconds(seconds))).rejects.toMatchObject({
        code: 'rate_limited',
        members: { retryAfter: 60 - seconds },
      })
    await expect(start(mailbox, inSeconds(60))).resolves.toBeDefined()
  })

  it('is rejected for the sixth code in an hour, from whatever address, but not while a code is open', async () => {
    const { start } = await codeScene(database(), { rateLimits: buildLimits() })
    const mailbox = newMailbox()
    const at = (minute: number) => inSeconds(minute * 60)
    for (const minute of [0, 3, 11, 22, 33, 44, 47])
      expect((await start(mailbox, at(minute))).answer.resendAfter).toBe(60)
    for (const clientAddress of ['203.0.113.1', '203.0.113.2'])
      await expect(start(mailbox, at(55), { clientAddress })).rejects.toMatchObject({
        code: 'rate_limited',
        members: { retryAfter: 300 },
      })
    await expect(start(newMailbox(), at(55), { clientAddress: '203.0.113.1' })).resolves.toBeDefined()
    await expect(start(mailbox, at(60))).resolves.toBeDefined()
  })

  it('is capped per country and in total', async () => {
    const rateLimits = buildLimits({
      otp_country: { count: 2, seconds: 86_400 },
      otp_total: { count: 4, seconds: 86_400 },
    })
    const { start, sent } = await codeScene(database(), { rateLimits })
    await start('+4915123456782')
    await start('+4915123456783')
    await expect(start('+4915123456784')).rejects.toMatchObject({ code: 'rate_limited' })
    await start('+33612345678')
    await start(newMailbox())
    await expect(start(newMailbox())).rejects.toMatchObject({ code: 'rate_limited' })
    expect(sent).toHaveLength(4)
  })

  it('cannot keep a cap exhausted past its UTC day by repeated attempts', async () => {
    const rateLimits = buildLimits({
      otp_country: { count: 1, seconds: 86_400 },
      otp_total: { count: 2, seconds: 86_400 },
      otp_resend: { count: 1000, seconds: 60 },
      otp_destination: { count: 1000, seconds: 3600 },
    })
    const { start } = await codeScene(database(), { rateLimits })
    const [phone, mailbox] = ['+4915123456785', newMailbox()]
    await start(phone)
    await start(mailbox)
    const midnight = new Date('2026-11-21T00:00:00.000Z')
    for (let hour = 1; hour < 12; hour += 1)
      for (const destination of [phone, mailbox])
        await expect(start(destination, inSeconds(hour * 3600))).rejects.toMatchObject({
          code: 'rate_limited',
          members: { retryAfter: (12 - hour) * 3600 },
        })
    await expect(start(phone, new Date(midnight.getTime() - 1))).rejects.toMatchObject({
      members: { retryAfter: 1 },
    })
    await expect(start(phone, midnight)).resolves.toBeDefined()
    await expect(start(mailbox, midnight)).resolves.toBeDefined()
  })

  it('sends nothing while the limits are unavailable', async () => {
    const rateLimiter = createRedisRateLimiter('redis://127.0.0.1:9')
    const { start, sent } = await codeScene(database(), { rateLimits: generous, rateLimiter })
    await expect(start(newMailbox())).rejects.toMatchObject({ code: 'provider_unavailable' })
    expect(sent).toEqual([])
    await rateLimiter.close()
  })

  it.each([
    'ada',
    'ada@example',
    'a@b@example.com',
    'ada@example.com\r\nBcc: eve@example.com',
    'ada@example.com, eve@example.com',
    `${'a'.repeat(250)}@example.com`,
    '"ada eve"@example.com',
  ])('is rejected for the mailbox %j', async (destination) => {
    const { start, sent } = await codeScene(database())
    await expect(start(destination)).rejects.toMatchObject({
      code: 'invalid_request',
      members: { issues: [{ path: 'destination' }] },
    })
    expect(sent).toEqual([])
  })

  it.each([
    '4915123456789',
    '015123456789',
    '+49',
    '+491',
    '+1234567890123456789',
    '+49 1512 3456789 ext. 5',
    '+abc',
  ])('is rejected for the phone number %j', async (destination) => {
    const { start, sent } = await codeScene(database())
    await expect(start(destination)).rejects.toMatchObject({
      code: 'invalid_request',
      members: { issues: [{ path: 'destination' }] },
    })
    expect(sent).toEqual([])
  })

  it('is rejected for an unavailable channel', async () => {
    const { start } = await codeScene(database(), { messages: { channels: ['email'], send: async () => {} } })
    await expect(start('+4915123456789')).rejects.toMatchObject({
      code: 'invalid_request',
      members: { issues: [{ path: 'channel', message: 'must be email here' }] },
    })
  })
})

describe('a destination’s hash', () => {
  it('depends on the deployment’s key and the channel', async () => {
    const mail = { channel: 'email', destination: 'Ada@Example.com ' } as const
    const [one, same, other] = await Promise.all([
      parseDestination({ dataKey: Buffer.from('one') }, mail),
      parseDestination({ dataKey: Buffer.from('one') }, { ...mail, destination: 'ada@example.com' }),
      parseDestination({ dataKey: Buffer.from('other') }, mail),
    ])
    expect(one).toEqual(same)
    expect(one.hash).not.toBe(other.hash)
    expect(one.hash).toMatch(/^[0-9a-f]{64}$/)
  })
})
