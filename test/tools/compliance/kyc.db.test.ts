import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect, it } from 'vitest'
import { openAlarms } from '../../../src/books/alarms/alarms.ts'
import { newId } from '../../../src/core/base/ids.ts'
import type { Principal } from '../../../src/core/base/principal.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import type { Context, Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import type { Tool } from '../../../src/kernel/tool.ts'
import { lockAccountRow } from '../../../src/people/compliance/kyc.ts'
import { findApplication, storeApplication } from '../../../src/people/compliance/kyc-store.ts'
import { findAccount } from '../../../src/people/identity/store.ts'
import type { Application, IdentityReview } from '../../../src/providers/identity-review/port.ts'
import { openWallet } from '../../../src/rails/wallets/open-wallet.ts'
import { settleReviews } from '../../../src/server/jobs/settle-reviews.ts'
import kyc from '../../../tools/compliance/kyc.ts'
import erase from '../../../tools/compliance/personal-data/erase.ts'
import page from '../../../tools/compliance/verification-page.ts'
import transfer from '../../../tools/wallets/transfer.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, newPerson, noon, servicesOn } from '../../kernel/scene.ts'

const applicant = {
  firstName: 'Ada',
  lastName: 'Lovelace',
  dateOfBirth: '1990-12-10',
  country: 'JP',
  address: { street: 'Unter den Linden 1', city: 'Berlin', postalCode: '10117' },
}
const running = new AbortController().signal

onBothEngines('identity verification', (database) => {
  let services: Services
  beforeAll(async () => {
    services = await servicesOn(database())
  })
  const call = async (tool: Tool, as: Principal, input: unknown, changes: Partial<Context> = {}) =>
    (await run(tool, buildCall(services, as, changes), input)).body
  const readLevel = async (as: Principal) =>
    'account' in as ? (await findAccount(database(), as.account.id))?.kycLevel : undefined

  it('links to the reviewer’s page for a review that waits, and for no other person’s', async () => {
    const [person, other] = [await newPerson(database()), await newPerson(database())]
    const identityReview: IdentityReview = {
      ...services.identityReview,
      submit: async ({ id }) => ({ reference: `r-${id}`, review: { status: 'pending', labels: [] } }),
      page: async ({ id, level }, now) => ({ url: `https://page.example/${level}/${id}`, expiresAt: now }),
    }
    expect(await call(page, person, {})).toEqual({ url: null, expiresAt: null })
    await expect(call(page, person, {}, { identityReview })).rejects.toMatchObject({ code: 'conflict' })
    const { id } = await call(kyc, person, { applicant }, { identityReview })
    expect(await call(page, person, {}, { identityReview })).toEqual({
      url: `https://page.example/basic/${String(id)}`,
      expiresAt: noon.toISOString(),
    })
    await expect(call(page, other, {}, { identityReview })).rejects.toMatchObject({ code: 'conflict' })
    // Rounds of other tests read every review that waits.
    await database().kysely.updateTable('kyc_application').set({ status: 'retry' }).execute()
  })

  it('can be verified anew after an erasure, and a person decides whether it is the same one', async () => {
    const person = await newPerson(database())
    expect(await call(kyc, person, { applicant })).toMatchObject({ status: 'approved' })
    await call(erase, person, {})
    expect(await call(kyc, person, {})).toMatchObject({ status: 'approved' })
    expect(await call(kyc, person, { applicant })).toMatchObject({
      status: 'pending',
      labels: ['IDENTITY_CHANGED'],
    })
    await database().kysely.updateTable('kyc_application').set({ status: 'retry' }).execute()
  })

  it('keeps contact details that an approved person adds, and changes none', async () => {
    const person = await newPerson(database())
    const line = { ...applicant, address: 'Unter den Linden 1, 10117 Berlin', email: 'ada@example.com' }
    expect(await call(kyc, person, { applicant: line })).toMatchObject({ status: 'approved' })
    const { street, city, postalCode } = applicant.address
    const added = {
      email: 'eve@example.com',
      phone: '+4915112345678',
      address: applicant.address,
    }
    await expect(call(kyc, person, { applicant: { ...added, firstName: 'Eve' } })).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('another person'),
    })
    expect(await call(kyc, person, { applicant: added })).toMatchObject({ status: 'approved', labels: [] })
    const keeping = { database: database(), dataKey: services.settings.dataKey }
    const accountId = 'account' in person ? person.account.id : ''
    const { said, status } = (await findApplication(keeping, { accountId, level: 'basic' })) ?? {}
    expect([status, said?.applicant]).toEqual([
      'approved',
      expect.objectContaining({
        firstName: 'Ada',
        email: 'ada@example.com',
        phone: '+4915112345678',
        address: 'Unter den Linden 1, 10117 Berlin',
        residence: { street, city, postalCode },
      }),
    ])
    // A second number does not replace the first.
    await call(kyc, person, { applicant: { phone: '+4915199999999' } })
    const again = await findApplication(keeping, { accountId, level: 'basic' })
    expect(again?.said?.applicant.phone).toBe('+4915112345678')
  })

  it('gives the reviewer an address by its parts, until it is replaced by one line', async () => {
    const person = await newPerson(database())
    const sent: unknown[] = []
    const identityReview = {
      ...services.identityReview,
      submit: async ({ applicant: { address, residence } }: Application) => {
        sent.push({ address, residence })
        return { reference: newId('kyc', noon), review: { status: 'retry', labels: [] } as const }
      },
    }
    await call(kyc, person, { applicant }, { identityReview })
    await call(kyc, person, { applicant: { ...applicant, address: 'Dorset Street 1' } }, { identityReview })
    expect(sent).toEqual([
      {
        address: 'Unter den Linden 1, Berlin, 10117',
        residence: { street: 'Unter den Linden 1', city: 'Berlin', postalCode: '10117' },
      },
      { address: 'Dorset Street 1', residence: {} },
    ])
  })

  it.each([
    ['another applicant', { reference: 'another', applicationId: null }],
    ['another application', { reference: 'own', applicationId: 'kyc_another' }],
  ])(
    'raises no level by a review of %s, and requests no other until a person decides',
    async (_what, subject) => {
      const person = await newPerson(database())
      let requestCount = 0
      const pending = { status: 'pending', labels: [] } as const
      const identityReview = {
        ...services.identityReview,
        submit: async () => ({ reference: 'own', review: pending }),
        read: async () => {
          requestCount += 1
          return { status: 'approved', labels: [], subject } as const
        },
      }
      const { id } = await call(kyc, person, { applicant }, { identityReview })
      for (const seconds of [60, 120, 180])
        await settleReviews(
          { ...services, identityReview, clock: () => new Date(noon.getTime() + seconds * 1_000) },
          running,
        )
      expect([requestCount, await readLevel(person)]).toEqual([1, 'none'])
      const raised = (await openAlarms(database())).filter(({ objectId }) => objectId === id)
      expect(raised).toMatchObject([{ domain: 'compliance', reason: 'another_applicant', times: 1 }])
    },
  )

  it('stores partial data, lists what is missing, and approves a complete application', async () => {
    const person = await newPerson(database())
    const { firstName, lastName, ...rest } = applicant
    const first = await call(kyc, person, { applicant: { firstName, lastName, shoeSize: 38 } })
    expect(first).toMatchObject({
      status: 'init',
      level: 'basic',
      requirements: ['applicant.dateOfBirth', 'applicant.country', 'applicant.address'],
      reviewedAt: null,
    })
    expect(JSON.stringify(first)).not.toContain('Lovelace')
    const second = await call(kyc, person, { applicant: rest })
    expect(second).toEqual({ ...first, status: 'approved', requirements: [], reviewedAt: noon.toISOString() })
    expect(await readLevel(person)).toBe('basic')
    expect(await call(kyc, person, {})).toEqual(second)
    const full = await call(kyc, person, { level: 'full', applicant })
    expect(full).toMatchObject({ status: 'init', requirements: ['documents'] })
    const documents = [{ type: 'passport', country: 'DE', reference: 'doc_1' }]
    expect(await call(kyc, person, { level: 'full', documents })).toMatchObject({ status: 'approved' })
    expect(await readLevel(person)).toBe('full')
  })

  it.each([
    ['Retry', 'retry', 'UNSATISFACTORY_PHOTOS'],
    ['Rejected', 'rejected', 'FORGERY'],
  ])('returns %s as the verdict and raises nothing', async (lastName, status, label) => {
    const person = await newPerson(database())
    expect(await call(kyc, person, { applicant: { ...applicant, lastName } })).toMatchObject({
      status,
      labels: [label],
    })
    expect(await readLevel(person)).toBe('none')
    // After `retry` a new application starts, and a changed name is reviewed by a person; `rejected` is final.
    const again = await call(kyc, person, { applicant })
    expect(again.status).toBe(status === 'retry' ? 'pending' : 'rejected')
    if (status === 'retry') expect(again.labels).toEqual(['IDENTITY_CHANGED'])
    expect(await readLevel(person)).toBe('none')
  })

  it('completes a slow review later', async () => {
    const person = await newPerson(database())
    const outcome = await call(kyc, person, { applicant: { ...applicant, lastName: 'Pending' } })
    expect(outcome).toMatchObject({ status: 'pending', reviewedAt: null })
    await settleReviews({ ...services, clock: () => new Date(noon.getTime() + 5_000) }, running)
    expect(await readLevel(person)).toBe('none')
    // The sandbox's reviewer uses its own clock, which stands still here.
    const identityReview = {
      ...services.identityReview,
      read: async () => ({ status: 'approved', labels: [] }) as const,
    }
    await settleReviews(
      { ...services, identityReview, clock: () => new Date(noon.getTime() + 15_000) },
      running,
    )
    expect(await readLevel(person)).toBe('basic')
    expect(await call(kyc, person, {})).toMatchObject({ status: 'approved' })
  })

  it('requires a person’s review for a name on the sanctions list', async () => {
    const person = await newPerson(database())
    const sanctions = {
      latest: async () => ({ ...(await services.sanctions.latest()), names: ['Rossi, Mario'] }),
    }
    const named = { ...applicant, firstName: 'Mario', lastName: 'Rossi' }
    expect(await call(kyc, person, { applicant: named }, { sanctions })).toMatchObject({
      status: 'pending',
      labels: ['SANCTIONS_REVIEW'],
    })
    await settleReviews({ ...services, clock: () => new Date(noon.getTime() + 60_000) }, running)
    expect(await readLevel(person)).toBe('none')
  })

  it('keeps the sanctions hit among concurrent applications', async () => {
    const listed = { applicant: { ...applicant, firstName: 'Roman', lastName: 'Semenov' } }
    const clean = { applicant }
    const states = await Promise.all(
      Array.from({ length: 24 }, async (_, round) => {
        const person = await newPerson(database())
        const pair = round % 2 === 0 ? [listed, clean] : [clean, listed]
        await Promise.all(pair.map((said) => call(kyc, person, said)))
        const { status, labels } = await call(kyc, person, {})
        return `${status} ${labels} ${await readLevel(person)}`
      }),
    )
    expect(new Set(states)).toEqual(new Set(['pending SANCTIONS_REVIEW none']))
  })

  it.each(['while', 'after'])(
    'revokes an approval when a listed name is submitted %s the review',
    async (when) => {
      const person = await newPerson(database())
      const listed = { applicant: { ...applicant, firstName: 'Roman', lastName: 'Semenov' } }
      let hit: Record<string, unknown> = {}
      const identityReview: Services['identityReview'] = {
        ...services.identityReview,
        submit: async (application) => {
          if (when === 'while') hit = await call(kyc, person, listed)
          return services.identityReview.submit(application)
        },
      }
      const outcome = await call(kyc, person, { applicant }, { identityReview })
      if (when === 'after') {
        expect(outcome).toMatchObject({ status: 'approved' })
        hit = await call(kyc, person, listed)
      } else expect(outcome.status).not.toBe('approved')
      expect(hit).toMatchObject({ status: 'pending', labels: ['SANCTIONS_REVIEW'] })
      expect(await readLevel(person)).toBe('none')
      expect(await call(kyc, person, {})).toEqual(hit)
    },
  )

  it('submits a review that a process left unfinished, and reopens one that the reviewer rejected', async () => {
    const person = await newPerson(database())
    const down = {
      ...services.identityReview,
      submit: () => Promise.reject(new Failure('provider_unavailable', 'Down.')),
    }
    await expect(call(kyc, person, { applicant }, { identityReview: down })).rejects.toMatchObject({
      code: 'provider_unavailable',
    })
    const { id } = await call(
      kyc,
      person,
      { applicant: { address: 'Dorset Street 1, London' } },
      {
        identityReview: {
          ...services.identityReview,
          submit: (application) => {
            expect(application.applicant.address).toBe('Dorset Street 1, London')
            return services.identityReview.submit(application)
          },
        },
      },
    )
    expect(await readLevel(person)).toBe('basic')
    // The state left by a process that died between claim and answer.
    await database()
      .kysely.updateTable('account')
      .set({ kyc_level: 'none' })
      .where('id', '=', person.account.id)
      .execute()
    await database()
      .kysely.updateTable('kyc_application')
      .set({ status: 'pending', reference: null, labels: [] })
      .where('id', '=', String(id))
      .execute()
    await settleReviews({ ...services, clock: () => new Date(noon.getTime() + 5_000) }, running)
    expect(await call(kyc, person, {})).toMatchObject({ id, status: 'approved' })
    expect(await readLevel(person)).toBe('basic')
  })

  it('is read, not restarted, by an empty call', async () => {
    const person = await newPerson(database())
    const outcome = await call(kyc, person, { applicant: { ...applicant, lastName: 'Retry' } })
    expect(await call(kyc, person, {})).toMatchObject({ id: outcome.id, status: 'retry' })
    expect(await call(kyc, person, { applicant: { firstName: 'Ada' } })).toMatchObject({ status: 'init' })
  })

  it('is rejected at every level at once', async () => {
    const person = await newPerson(database())
    const outcome = await call(kyc, person, { applicant: { ...applicant, lastName: 'Rejected' } })
    const documents = [{ type: 'passport', country: 'DE', reference: 'doc_1' }]
    for (const level of ['full', 'basic'])
      expect(await call(kyc, person, { level, applicant, documents })).toMatchObject({
        id: outcome.id,
        status: 'rejected',
      })
    expect(await readLevel(person)).toBe('none')
  })

  it.each([
    [{ firstName: 'Ada\u202E' }, 'applicant.firstName'],
    [{ firstName: '\u200B' }, 'applicant.firstName'],
    [{ lastName: '\u3164\u3164' }, 'applicant.lastName'],
    [{ lastName: '\u200F\u200F' }, 'applicant.lastName'],
    [{ lastName: '-' }, 'applicant.lastName'],
    [{ firstName: '\u2066Ada' }, 'applicant.firstName'],
    [{ country: 'ZZ' }, 'applicant.country'],
    [{ country: 'XX' }, 'applicant.country'],
    [{ dateOfBirth: '2190-01-01' }, 'applicant.dateOfBirth'],
    [{ dateOfBirth: '2010-01-01' }, 'applicant.dateOfBirth'],
    [{ address: {} }, 'applicant.address'],
    [{ address: { city: ' ' } }, 'applicant.address'],
  ])('rejects %j', async (said, path) => {
    const person = await newPerson(database())
    const refused = call(kyc, person, { applicant: { ...applicant, ...said } })
    await expect(refused).rejects.toMatchObject({
      code: 'invalid_request',
      members: { issues: [{ path }] },
    })
  })

  it.each(['\u200Fمحمد', 'כהן\u200E', '\u061Cعلي', 'علی\u200Cرضا', '𠮷', 'Ada'])(
    'accepts the name %j',
    async (firstName) => {
      const person = await newPerson(database())
      const outcome = await call(kyc, person, { applicant: { ...applicant, firstName, country: 'XK' } })
      expect(outcome).toMatchObject({ status: 'approved' })
      const found = await findApplication(
        { database: database(), dataKey: services.settings.dataKey },
        { accountId: person.account.id, level: 'basic' },
      )
      expect(found?.said?.applicant.firstName).toBe(firstName.replace(/[\u200E\u200F\u061C]/, ''))
    },
  )

  it('is one application although it is submitted many times concurrently', async () => {
    const person = await newPerson(database())
    const outcome = await Promise.all(Array.from({ length: 8 }, () => call(kyc, person, { applicant })))
    expect(new Set(outcome.map(({ id }) => id)).size).toBe(1)
    expect(await readLevel(person)).toBe('basic')
  })

  it('is erased although more of it is stored at the same time', async () => {
    const person = await newPerson(database())
    const accountId = 'account' in person ? person.account.id : ''
    await call(kyc, person, { applicant })
    let erasing: Promise<unknown> | undefined
    // Contact details that are added: read and stored under the lock of the account.
    await database().transaction(async (connection) => {
      const keeping = { database: connection, dataKey: services.settings.dataKey }
      await lockAccountRow(connection, accountId)
      const found = await findApplication(keeping, { accountId, level: 'basic' })
      if (found === undefined || found.said === null) throw new Error('nothing was stored')
      erasing = call(erase, person, {})
      await Promise.race([erasing, sleep(300)])
      await storeApplication(keeping, { ...found, said: found.said }, noon)
    })
    await erasing
    const keeping = { database: database(), dataKey: services.settings.dataKey }
    expect(await findApplication(keeping, { accountId, level: 'basic' })).toMatchObject({ said: null })
  })

  it('is stored sealed, and can be erased; the verdict stays', async () => {
    const person = await newPerson(database())
    const { id } = await call(kyc, person, { applicant })
    const readSealed = async () =>
      (
        await database()
          .kysely.selectFrom('kyc_application')
          .select('sealed')
          .where('id', '=', String(id))
          .executeTakeFirstOrThrow()
      ).sealed
    expect(Buffer.from((await readSealed()) ?? []).toString('latin1')).not.toContain('Lovelace')
    expect(await call(erase, person, {})).toEqual({ erased: true })
    expect(await readSealed()).toBeNull()
    expect(await call(kyc, person, {})).toMatchObject({ id, status: 'approved', requirements: [] })
  })

  it('limits a single spend by level', async () => {
    const person = await newPerson(database())
    await openWallet(services, { accountId: person.account.id, at: noon })
    const settings = { ...services.settings, kycLimits: { none: 5_000_000n, basic: 50_000_000n, full: null } }
    const pay = async (amount: string) => {
      const account = await findAccount(database(), person.account.id)
      if (account === undefined) throw new Error('the account is missing')
      const input = {
        destination: '0x000000000000000000000000000000000000dEaD',
        amount,
        signature: 'sandbox',
      }
      return call(transfer, { ...person, account }, input, { settings })
    }
    // The wallet is empty, so a call that passes the limit fails for lack of funds.
    await expect(pay('5')).rejects.toMatchObject({ code: 'insufficient_funds' })
    await expect(pay('5.000001')).rejects.toMatchObject({
      code: 'kyc_required',
      members: { hint: expect.stringContaining('"level":"basic"') },
    })
    await call(kyc, person, { applicant })
    await expect(pay('50')).rejects.toMatchObject({ code: 'insufficient_funds' })
    await expect(pay('51')).rejects.toMatchObject({
      code: 'kyc_required',
      members: { hint: expect.stringContaining('"level":"full"') },
    })
  })
})
