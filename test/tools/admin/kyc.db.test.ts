import { beforeAll, beforeEach, expect, it } from 'vitest'
import { Failure } from '../../../src/core/failures/failure.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { findAccount } from '../../../src/people/identity/store.ts'
import { settleReviews } from '../../../src/server/jobs/settle-reviews.ts'
import decide from '../../../tools/admin/kyc/decide.ts'
import list from '../../../tools/admin/kyc/list.ts'
import kyc from '../../../tools/compliance/kyc.ts'
import erase from '../../../tools/compliance/personal-data/erase.ts'
import sandboxAdmin from '../../../tools/sandbox/admin.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import { newSignedIn, type SignedIn } from '../../people/identity/signed-in.ts'

const applicant = {
  firstName: 'Mario',
  lastName: 'Rossi',
  dateOfBirth: '1990-12-10',
  country: 'IT',
  address: 'Via Roma 1, Milano',
}
const later = () => new Date(noon.getTime() + 60_000)
const reason = 'Forty years younger than the one on the list.'

onBothEngines('a name on the sanctions list', (database) => {
  let services: Services
  let admin: SignedIn
  let person: SignedIn
  let id: string
  const readLevel = async ({ accountId }: SignedIn) => (await findAccount(database(), accountId))?.kycLevel
  const listApplications = async () => JSON.stringify((await admin.call(list, {})).body)
  const apply = async (caller: SignedIn, input: object) => (await caller.call(kyc, input)).body
  const decideOn = async (decision: string, caller = admin) =>
    (await caller.call(decide, { id, decision, reason })).body

  beforeAll(async () => {
    const sandbox = await servicesOn(database())
    const { sanctions } = sandbox
    services = {
      ...sandbox,
      sanctions: { latest: async () => ({ ...(await sanctions.latest()), names: ['ROSSI, Mario'] }) },
    }
  })
  beforeEach(async () => {
    admin = await newSignedIn(services)
    await admin.call(sandboxAdmin, {})
    person = await newSignedIn(services)
    const application = await apply(person, { applicant })
    expect(application).toMatchObject({ status: 'pending', labels: ['SANCTIONS_REVIEW'] })
    id = String(application.id)
  })

  it('waits for an administrator, with the list entry; once approved, the review continues', async () => {
    const { body } = await admin.call(list, { limit: 1 })
    expect(body.applications).toEqual([
      {
        id,
        accountId: person.accountId,
        level: 'basic',
        applicant: { name: 'Mario Rossi', dateOfBirth: '1990-12-10', country: 'IT' },
        hits: ['ROSSI, Mario'],
      },
    ])
    expect(await decideOn('approve')).toEqual({ id, status: 'approved' })
    expect(await readLevel(person)).toBe('basic')
    expect(await listApplications()).not.toContain(id)
    expect(
      await database()
        .kysely.selectFrom('kyc_decision')
        .selectAll()
        .where('application_id', '=', id)
        .execute(),
    ).toEqual([
      { application_id: id, decided_by: admin.accountId, verdict: 'approve', reason, decided_at: noon },
    ])
    await expect(decideOn('reject')).rejects.toMatchObject({ code: 'conflict' })
  })

  it('is rejected permanently, once, under concurrent decisions', async () => {
    const decided = await Promise.allSettled([1, 2, 3].map(() => decideOn('reject')))
    expect(decided.filter(({ status }) => status === 'fulfilled').length).toBe(1)
    expect(await apply(person, { applicant })).toMatchObject({ id, status: 'rejected' })
    expect(await readLevel(person)).toBe('none')
    await expect(decideOn('approve')).rejects.toMatchObject({ code: 'conflict' })
  })

  it('is forwarded to an asynchronous reviewer', async () => {
    const down = async () => {
      throw new Failure('provider_unavailable', 'Down.')
    }
    const { identityReview } = services
    admin = await newSignedIn({ ...services, identityReview: { ...identityReview, submit: down } })
    await admin.call(sandboxAdmin, {})
    expect(await decideOn('approve')).toEqual({ id, status: 'pending' })
    await settleReviews({ ...services, clock: later }, new AbortController().signal)
    expect(await readLevel(person)).toBe('basic')
  })

  it('cannot be decided by the applicant, nor by a non-administrator', async () => {
    await expect(decideOn('approve', person)).rejects.toMatchObject({ code: 'insufficient_scope' })
    await person.call(sandboxAdmin, {})
    await expect(decideOn('approve', person)).rejects.toMatchObject({ code: 'conflict' })
    await expect(
      admin.call(decide, { id: 'kyc_00000000000000000000000000', decision: 'approve', reason }),
    ).rejects.toMatchObject({ code: 'not_found' })
    expect(await readLevel(person)).toBe('none')
  })

  it('applies at every level and to later applications, until it is decided', async () => {
    const documents = [{ type: 'passport', country: 'IT', reference: 'doc_1' }]
    const clean = { level: 'full', applicant: { ...applicant, lastName: 'Bianchi' }, documents }
    expect(await apply(person, clean)).toMatchObject({ id, status: 'pending' })
    await person.call(erase, {})
    for (const other of [clean, { ...clean, level: 'basic' }, {}])
      expect(await apply(person, other)).toMatchObject({ id, status: 'pending', level: 'basic' })
    await settleReviews({ ...services, clock: later }, new AbortController().signal)
    expect(await readLevel(person)).toBe('none')
    await decideOn('reject')
    for (const level of ['basic', 'full'])
      expect(await apply(person, { ...clean, level })).toMatchObject({ id, status: 'rejected' })
    expect(await readLevel(person)).toBe('none')
  })

  it.each([
    ['approve', 'approved', 'full'],
    ['reject', 'rejected', 'none'],
  ])('blocks earlier applications under review: %s', async (decision, status, level) => {
    person = await newSignedIn(services)
    const documents = [{ type: 'passport', country: 'IT', reference: 'doc_1' }]
    const other = { level: 'full', applicant: { ...applicant, lastName: 'Pending' }, documents }
    const { id: otherId } = await apply(person, other)
    id = String((await apply(person, { applicant })).id)
    const identityReview = {
      ...services.identityReview,
      read: async () => ({ status: 'approved', labels: [] }) as const,
    }
    const settle = (seconds: number) =>
      settleReviews(
        { ...services, identityReview, clock: () => new Date(noon.getTime() + seconds * 1_000) },
        new AbortController().signal,
      )
    await settle(60)
    expect(await readLevel(person)).toBe('none')
    await decideOn(decision)
    await settle(120)
    expect(await apply(person, { level: 'full' })).toMatchObject({ id: otherId, status })
    expect(await readLevel(person)).toBe(level)
  })

  it.each([
    ['approve', 'full'],
    ['reject', 'none'],
  ])('submitted after an approval revokes the level: %s', async (decision, level) => {
    person = await newSignedIn(services)
    const documents = [{ type: 'passport', country: 'IT', reference: 'doc_1' }]
    const clean = { ...applicant, lastName: 'Bianchi' }
    const { id: approvedId } = await apply(person, { applicant: clean })
    await apply(person, { level: 'full', applicant: clean, documents })
    expect(await readLevel(person)).toBe('full')
    const hit = await apply(person, { applicant })
    expect(hit).toMatchObject({ status: 'pending', labels: ['SANCTIONS_REVIEW'] })
    expect(hit.id).not.toBe(approvedId)
    expect(await readLevel(person)).toBe('none')
    id = String(hit.id)
    expect(await listApplications()).toContain(id)
    await decideOn(decision)
    expect(await readLevel(person)).toBe(level)
  })

  it('can be resubmitted after erasure and clearance; its clearance covers no other name', async () => {
    await person.call(erase, {})
    expect(await listApplications()).toContain(
      `"id":"${id}","accountId":"${person.accountId}","level":"basic","applicant":null`,
    )
    expect(await decideOn('approve')).toEqual({ id, status: 'retry' })
    const again = await apply(person, { applicant: { ...applicant, dateOfBirth: '1950-01-01' } })
    expect(again).toMatchObject({ status: 'pending', labels: ['SANCTIONS_REVIEW'] })
    expect(again.id).not.toBe(id)
    await settleReviews({ ...services, clock: later }, new AbortController().signal)
    expect(await readLevel(person)).toBe('none')
    expect(await apply(person, {})).toMatchObject({ id: again.id, status: 'pending' })
  })
})
