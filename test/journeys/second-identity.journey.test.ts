/** One account, one person: a second name, an erasure and a verified name, over HTTP. */
import pg from 'pg'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { overSharedAndPostgres } from './both-engines.ts'
import { newMailbox, type Person, requestJson, signInByEmail } from './people.ts'

const ada = {
  firstName: 'Ada',
  lastName: 'Lovelace',
  dateOfBirth: '1990-12-10',
  country: 'DE',
  address: 'Unter den Linden 1, Berlin',
}
const documents = [{ type: 'passport', country: 'DE', reference: 'scan-1' }]

overSharedAndPostgres('an account', ({ gateway, databaseUrl }) => {
  const newPerson = () => signInByEmail(gateway().origin, newMailbox('applicant'))
  const apply = (person: Person, body: object) => person.send('POST', '/api/compliance/kyc', body)
  const verifyPerson = async () => {
    const person = await newPerson()
    expect((await apply(person, { applicant: ada })).body).toMatchObject({ status: 'approved' })
    return person
  }

  it('needs a person’s review for an application under another name or birth date', async () => {
    const admin = await newPerson()
    await admin.send('POST', '/sandbox/admin', {})
    for (const changed of [{ lastName: 'King' }, { dateOfBirth: '1991-12-10' }]) {
      const person = await verifyPerson()
      const { body } = await apply(person, { level: 'full', applicant: { ...ada, ...changed }, documents })
      expect(body).toMatchObject({ status: 'pending', labels: ['IDENTITY_CHANGED'] })
      expect((await person.send('GET', '/api/auth/session')).body.account).toMatchObject({
        kycLevel: 'basic',
      })
      const { body: waiting } = await admin.send('GET', '/api/admin/kyc')
      expect(JSON.stringify(waiting)).toContain(String(body.id))
      const decided = await admin.send('POST', `/api/admin/kyc/${String(body.id)}`, {
        decision: 'approve',
        reason: 'married',
      })
      expect(decided.status).toBe(200)
    }
    const same = await verifyPerson()
    const spelled = { ...ada, firstName: ' ada', lastName: 'LOVELACE ' }
    expect((await apply(same, { level: 'full', applicant: spelled, documents })).body).toMatchObject({
      status: 'approved',
    })
  })

  it('needs a person’s review under another name or birth date after a retryable rejection', async () => {
    const person = await newPerson()
    const blurred = { ...ada, lastName: 'Retry' }
    for (const _ of [1, 2])
      expect((await apply(person, { applicant: blurred })).body).toMatchObject({
        status: 'retry',
        labels: ['UNSATISFACTORY_PHOTOS'],
      })
    const { body } = await apply(person, { applicant: ada })
    expect(body).toMatchObject({ status: 'pending', labels: ['IDENTITY_CHANGED'] })

    const erased = await newPerson()
    await apply(erased, { applicant: blurred })
    await erased.send('DELETE', '/api/compliance/personal-data')
    expect((await apply(erased, { applicant: ada })).body).toMatchObject({ labels: ['IDENTITY_CHANGED'] })
    for (const { send: ask } of [person, erased])
      expect((await ask('GET', '/api/auth/session')).body.account).toMatchObject({ kycLevel: 'none' })
  })

  it('keeps statements for one level apart from those for the other', async () => {
    const person = await verifyPerson()
    const { body } = await apply(person, { level: 'full' })
    expect(body).toMatchObject({ status: 'init', requirements: ['documents'] })
    expect((await apply(person, { level: 'full', documents })).body).toMatchObject({ status: 'approved' })
  })

  it('erases the statements but not the decision; an erased name matches no later name', async () => {
    const person = await verifyPerson()
    await person.send('POST', '/api/compliance/travel-rule', {
      amount: '1500',
      destination: `0x${'1'.repeat(40)}`,
      beneficiary: { name: 'Grace Hopper', vasp: { name: 'Hopper Bank' } },
    })
    expect((await person.send('DELETE', '/api/compliance/personal-data')).status).toBe(200)
    const url = databaseUrl()
    if (url !== null) {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      const kept = await client.query('select * from travel_rule where account_id = $1', [person.accountId])
      const account = await client.query('select country, kyc_level from account where id = $1', [
        person.accountId,
      ])
      await client.end()
      expect(kept.rows).toHaveLength(1)
      expect(JSON.stringify(kept.rows)).not.toContain('Hopper')
      expect(account.rows).toEqual([{ country: 'DE', kyc_level: 'basic' }])
    }
    const { body } = await apply(person, { level: 'full', applicant: ada, documents })
    expect(body).toMatchObject({ status: 'pending', labels: ['IDENTITY_CHANGED'] })
  })

  it('uses the verified name on cards, bank accounts and Travel Rule data', async () => {
    const person = await verifyPerson()
    const { body: card } = await person.send('POST', '/api/cards', { limits: { daily: '5' } })
    expect(card.cardholderName).toBe('Ada Lovelace')
    const { body: bank } = await person.send('POST', '/api/banking', { currency: 'EUR' })
    expect(bank.accountHolderName).toBe('Ada Lovelace')
    const { body: rule } = await person.send('POST', '/api/compliance/travel-rule', {
      amount: '1500',
      destination: `0x${'2'.repeat(40)}`,
      beneficiary: { name: 'Grace Hopper' },
      originator: { name: 'Mallory Smith' },
    })
    const payload = JSON.stringify(z.looseObject({}).parse(rule.payload))
    expect(payload).toContain('Lovelace')
    expect(payload).not.toContain('Mallory')
    expect((await requestJson(gateway().origin, 'GET', '/healthz')).status).toBe(200)
  })
})
