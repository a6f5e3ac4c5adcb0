/** The journal of changes by owners and administrators: over real HTTP, on both engines, and by `bursar audit`. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { openPostgres } from '../../src/storage/postgres.ts'
import { bursar } from '../commands/bursar.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { newAgent } from './agent.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { enrollMfa, newGuest, type Person, requestJson, signInByEmail } from './people.ts'

const answer = z.object({
  entries: z.array(
    z.strictObject({
      id: z.string().startsWith('jrn_'),
      at: z.iso.datetime(),
      actor: z.strictObject({
        kind: z.enum(['person', 'admin', 'key', 'system']),
        id: z.string().nullable(),
      }),
      action: z.string(),
      object: z.strictObject({ kind: z.string(), id: z.string() }),
      before: z.unknown().optional(),
      after: z.unknown().optional(),
      beforeHash: z.string().optional(),
      afterHash: z.string().optional(),
      hash: z.string().regex(/^[0-9a-f]{64}$/),
    }),
  ),
  nextCursor: z.string().nullable(),
})
const intentAnswer = z.looseObject({ intentId: z.string(), typedData: z.looseObject({}) })
const cards = z.object({ cards: z.array(z.looseObject({ id: z.string() })) })

/** A person whose wallet is owned by an EVM key. */
async function withEvmKey(origin: string, email: string) {
  const person = await signInByEmail(origin, email)
  const key = privateKeyToAccount(generatePrivateKey())
  const { address } = key
  const { body } = await person.send('POST', '/api/wallets/signers', { address })
  const signature = await key.signTypedData(body.typedData as never)
  await person.send('POST', '/api/wallets/signers', { address, signature })
  const sign = ({ typedData }: z.output<typeof intentAnswer>) => key.signTypedData(typedData as never)
  return { ...person, sign }
}

const outbox = z.object({ messages: z.array(z.object({ destination: z.string(), code: z.string() })) })

/** The newest code that was sent to an address. */
async function codeFor(origin: string, destination: string): Promise<string | undefined> {
  const { messages } = outbox.parse((await requestJson(origin, 'GET', '/sandbox/outbox')).body)
  return messages.find((message) => message.destination === destination && message.code !== '')?.code
}

/** A person with a name on the sandbox's sanctions list. */
const listed = {
  firstName: 'Roman',
  lastName: 'Semenov',
  dateOfBirth: '2001-02-03',
  country: 'IT',
  address: 'Via Roma 1, Milano',
}

const buildPolicy = (max: string) => ({
  perTransaction: { max },
  dailyBudget: { max },
  categories: { allow: ['transfer', 'card'] },
})

describe.each([
  { engine: 'PGlite', isSkipped: false },
  { engine: 'PostgreSQL', isSkipped: testServerUrl === undefined },
])('the journal on $engine', ({ engine, isSkipped }) => {
  const directory = mkdtempSync(join(tmpdir(), 'bursar-journal-'))
  const exported = join(directory, 'export.jsonl')
  const env: Record<string, string> = {
    DATA_DIR: join(directory, 'data'),
    CHAIN: 'simulated',
    LOG_LEVEL: 'silent',
  }
  let gateway: Gateway
  let drop = async () => {}
  let owner: Person
  const readJournal = async (reader: Person, query = '') =>
    answer.parse((await reader.send('GET', `/api/security/journal${query}`)).body)
  const newest = async (reader: Person) => (await readJournal(reader)).entries[0]
  beforeAll(async () => {
    if (isSkipped) return
    const created = engine === 'PGlite' ? null : await createTestDatabase(testServerUrl ?? '')
    drop = created?.drop ?? drop
    if (created !== null) env.DATABASE_URL = created.url
    gateway = await startGateway({
      ...env,
      RATE_OTP_RESEND: '100/1',
      RATE_OTP_IP: '100/60',
      RATE_MUTATIONS: '10000/60',
      RATE_STOPS: '10000/60',
    })
    owner = await newGuest(gateway.origin)
  })
  afterAll(async () => {
    await gateway?.stop()
    await drop()
    rmSync(directory, { recursive: true, force: true })
  })

  it.skipIf(isSkipped)(
    'records the author of a policy change, with the state before and after and without names',
    async () => {
      const agent = await newAgent()
      const { body } = await owner.send('POST', '/api/agents/keys', {
        name: 'An unused name',
        publicKey: agent.jwk,
        scopes: ['wallets:transfer'],
        policy: buildPolicy('5'),
      })
      const id = String(body.agentId)
      const actor = { kind: 'person', id: owner.accountId }
      expect(await newest(owner)).toMatchObject({ actor, action: 'key.created', object: { kind: 'key', id } })
      await owner.send('PATCH', `/api/agents/keys/${id}`, { policy: buildPolicy('3') })
      expect(await newest(owner)).toMatchObject({
        actor,
        action: 'key.updated',
        before: { policy: { perTransaction: { max: '5' } }, policyVersion: 1 },
        after: { policy: { perTransaction: { max: '3' } }, policyVersion: 2 },
      })
      await owner.send('POST', `/api/agents/keys/${id}/pause`, {})
      expect(await newest(owner)).toMatchObject({
        action: 'key.paused',
        before: { status: 'active' },
        after: { status: 'paused' },
      })
      await owner.send('PUT', '/api/agents/policy', { dailyBudget: { max: '9' } })
      expect((await newest(owner))?.action).toBe('policy.owner_cap_set')
      await owner.send('DELETE', `/api/agents/keys/${id}`)
      expect((await newest(owner))?.action).toBe('key.revoked')
      expect(JSON.stringify(await readJournal(owner))).not.toContain('An unused name')
    },
  )

  it.skipIf(isSkipped)(
    'keeps what changed of large policies, at most 10 KB an entry and 1 MiB a day',
    async () => {
      const person = await newGuest(gateway.origin)
      const payees = (first: number) =>
        Array.from({ length: 500 }, (_, at) => `0x${(first + at).toString(16).padStart(40, '0')}`)
      const policyAgainst = (deny: readonly string[]) => ({ ...buildPolicy('5'), counterparties: { deny } })
      const { body } = await person.send('POST', '/api/agents/keys', {
        name: 'Large',
        publicKey: (await newAgent()).jwk,
        scopes: ['wallets:transfer'],
        policy: policyAgainst(payees(0)),
      })
      const path = `/api/agents/keys/${String(body.agentId)}`
      const change = async (deny: readonly string[]) => {
        expect(await person.send('PATCH', path, { policy: policyAgainst(deny) })).toMatchObject({
          status: 200,
        })
        return JSON.stringify((await readJournal(person, '?limit=1')).entries[0]).length
      }
      const [first = '', ...others] = payees(0)
      expect(await change([...others, `0x${'f'.repeat(40)}`])).toBeLessThan(3_000)
      expect(await newest(person)).toMatchObject({
        before: { policy: { counterparties: { deny: [first] } } },
        after: { policy: { counterparties: { deny: [`0x${'f'.repeat(40)}`] } } },
        beforeHash: expect.any(String),
      })
      for (let round = 1; round <= 200; round += 1)
        expect(await change(payees(round * 1_000))).toBeLessThan(10_000)
      const last = await newest(person)
      expect([last?.before, last?.after, last?.afterHash?.length]).toEqual([undefined, undefined, 64])
      await person.send('POST', `${path}/pause`, {})
      expect((await newest(person))?.action).toBe('key.paused')
      let cursor: string | null = ''
      let bytes = 0
      while (cursor !== null) {
        const page = await readJournal(person, `?limit=100${cursor === '' ? '' : `&cursor=${cursor}`}`)
        bytes += JSON.stringify(page.entries).length
        cursor = page.nextCursor
      }
      expect(bytes).toBeLessThan(1.2 * 1_048_576)
    },
  )

  it.skipIf(isSkipped)('records an API key’s change to a card, with the key as the actor', async () => {
    const [card] = cards.parse((await owner.send('GET', '/api/cards')).body).cards
    await owner.send('POST', '/api/cards/settings', { cardId: card?.id, freeze: true })
    expect(await newest(owner)).toMatchObject({
      action: 'card.updated',
      object: { kind: 'card', id: card?.id },
      before: { status: 'active' },
      after: { status: 'frozen' },
    })
    const made = await owner.send('POST', '/api/developer/keys', {
      name: 'K',
      scopes: ['cards:write'],
      policy: buildPolicy('5'),
    })
    await owner.send('PATCH', '/api/cards', { cardId: card?.id, agentId: made.body.id })
    const changed = await requestJson(gateway.origin, 'POST', '/api/cards/settings', {
      body: { cardId: card?.id, limits: { daily: '1' } },
      headers: { authorization: `Bearer ${String(made.body.key)}` },
    })
    expect(changed.status).toBe(200)
    expect((await newest(owner))?.actor).toEqual({ kind: 'key', id: made.body.id })
  })

  it.skipIf(isSkipped)('records the pausing and resuming of an API key', async () => {
    const { body } = await owner.send('POST', '/api/developer/keys', {
      name: 'An unused name',
      scopes: ['wallets:read'],
    })
    const id = String(body.id)
    for (const [before, after] of [
      ['active', 'paused'],
      ['paused', 'active'],
    ]) {
      await owner.send('PATCH', `/api/developer/keys/${id}`, { status: after })
      expect(await newest(owner)).toMatchObject({
        actor: { kind: 'person', id: owner.accountId },
        action: 'key.updated',
        object: { kind: 'key', id },
        before: { kind: 'developer', status: before },
        after: { kind: 'developer', status: after },
      })
    }
    const outsider = await newGuest(gateway.origin)
    const foreign = await outsider.send('PATCH', `/api/developer/keys/${id}`, { status: 'paused' })
    expect(foreign.status).toBe(404)
    expect([(await newest(owner))?.after, await newest(outsider)]).toMatchObject([
      { status: 'active' },
      undefined,
    ])
  })

  it.skipIf(isSkipped)('records the issuing of a card once, with its actor and controls', async () => {
    const mine = { nickname: 'An unused name', limits: { daily: '12.50' } }
    const again = { 'idempotency-key': `card-${engine}` }
    const issued = await owner.send('POST', '/api/cards', mine, again)
    expect(await newest(owner)).toMatchObject({
      actor: { kind: 'person', id: owner.accountId },
      action: 'card.issued',
      object: { kind: 'card', id: issued.body.id },
      after: { status: 'active', limits: { daily: '12.5' }, keyId: null },
    })
    const once = await newest(owner)
    expect((await owner.send('POST', '/api/cards', mine, again)).body.id).toBe(issued.body.id)
    expect(await newest(owner)).toEqual(once)
    const made = await owner.send('POST', '/api/developer/keys', {
      name: 'K',
      scopes: ['cards:write'],
      policy: buildPolicy('5'),
    })
    const byKey = await requestJson(gateway.origin, 'POST', '/api/cards', {
      body: { limits: { daily: '1' } },
      headers: { authorization: `Bearer ${String(made.body.key)}` },
    })
    expect(await newest(owner)).toMatchObject({
      actor: { kind: 'key', id: made.body.id },
      action: 'card.issued',
      object: { id: byKey.body.id },
      after: { keyId: made.body.id },
    })
    expect(JSON.stringify(await readJournal(owner))).not.toContain('An unused name')
  })

  it.skipIf(isSkipped)('records the on-chain allowance of an agent, once', async () => {
    const holder = await withEvmKey(gateway.origin, `holder-${engine.toLowerCase()}@example.com`)
    const agent = await newAgent()
    const { body } = await holder.send('POST', '/api/agents/keys', {
      name: 'K',
      publicKey: agent.jwk,
      scopes: ['wallets:transfer'],
      policy: buildPolicy('5'),
    })
    const intent = intentAnswer.parse(
      (await holder.send('POST', '/api/wallets/allowances/intent', { agentId: body.agentId })).body,
    )
    expect((await newest(holder))?.action).toBe('key.created')
    const unsigned = { intentId: intent.intentId, signature: 'x' }
    expect((await holder.send('POST', '/api/wallets/allowances', unsigned)).status).toBe(403)
    expect((await newest(holder))?.action).toBe('key.created')
    const signed = { ...unsigned, signature: await holder.sign(intent) }
    for (let times = 0; times < 2; times += 1) {
      const set = await holder.send('POST', '/api/wallets/allowances', signed)
      expect(set).toMatchObject({ status: 200, body: { dailyMax: '5' } })
    }
    const entries = (await readJournal(holder)).entries.map(({ action }) => action)
    expect(entries.filter((action) => action === 'allowance.authorized')).toHaveLength(1)
    expect(await newest(holder)).toMatchObject({
      actor: { kind: 'person', id: holder.accountId },
      action: 'allowance.authorized',
      object: { kind: 'key', id: body.agentId },
      after: { dailyMax: '5' },
    })
  })

  it.skipIf(isSkipped)('records an added sign-in address, without the address', async () => {
    const name = engine.toLowerCase()
    const person = await signInByEmail(gateway.origin, `first-${name}@example.com`)
    const destination = `second-${name}@example.com`
    const { body: started } = await requestJson(gateway.origin, 'POST', '/api/auth/otp/start', {
      body: { channel: 'email', destination },
    })
    const link = { challengeId: started.challengeId, code: await codeFor(gateway.origin, destination) }
    expect(await newest(person)).toBeUndefined()
    expect((await person.send('POST', '/api/auth/otp/verify', { ...link, link: true })).status).toBe(200)
    expect(await newest(person)).toMatchObject({
      actor: { kind: 'person', id: person.accountId },
      action: 'factor.added',
      object: { kind: 'email', id: person.accountId },
    })
    expect(JSON.stringify(await readJournal(person))).not.toContain('@')
  })

  it.skipIf(isSkipped)('shows an applicant the decision on a sanctions hit, without the reason', async () => {
    const name = engine.toLowerCase()
    const admin = await signInByEmail(gateway.origin, `officer-${name}@example.com`)
    await admin.send('POST', '/sandbox/admin', {})
    expect(await newest(admin)).toMatchObject({ action: 'account.role_changed', after: { role: 'admin' } })
    await enrollMfa(admin)
    const before = await newest(admin)
    for (const [decision, action, status] of [
      ['approve', 'kyc.hit_cleared', 'pending'],
      ['reject', 'kyc.rejected', 'rejected'],
    ]) {
      const applicant = await signInByEmail(gateway.origin, `${decision}-${name}@example.com`)
      const { body } = await applicant.send('POST', '/api/compliance/kyc', { applicant: listed })
      expect(body).toMatchObject({ status: 'pending', labels: ['SANCTIONS_REVIEW'] })
      const decide = { decision, reason: 'An unused reason' }
      const path = `/api/admin/kyc/${String(body.id)}`
      expect((await admin.send('POST', path, decide)).status).toBe(200)
      expect(await newest(applicant)).toMatchObject({
        actor: { kind: 'admin', id: admin.accountId },
        action,
        object: { kind: 'kyc', id: body.id },
        before: { level: 'basic', status: 'pending' },
        after: { level: 'basic', status },
      })
      expect((await admin.send('POST', path, decide)).status).toBe(409)
      const { entries } = await readJournal(applicant)
      expect(entries).toHaveLength(1)
      expect(JSON.stringify(entries)).not.toMatch(/A reason|Semenov/)
    }
    expect(await newest(admin)).toEqual(before)
  })

  it.skipIf(isSkipped)(
    'records changes to factors, locks, approvals and rails in the journal of each affected account',
    async () => {
      const admin = await signInByEmail(gateway.origin, `warden-${engine.toLowerCase()}@example.com`)
      await admin.send('POST', '/sandbox/admin', {})
      await enrollMfa(admin)
      expect(await newest(admin)).toMatchObject({ action: 'factor.added', object: { kind: 'totp' } })
      await admin.send('PUT', '/api/rails/wallet-gasless/controls', { enabled: true })
      expect(await newest(admin)).toMatchObject({
        actor: { kind: 'admin', id: admin.accountId },
        action: 'rail.switched',
        object: { kind: 'rail', id: 'wallet-gasless' },
        after: { enabled: true },
      })
      const other = await newGuest(gateway.origin)
      await admin.send('POST', `/api/admin/accounts/${other.accountId}/lock`, {})
      await admin.send('POST', `/api/admin/accounts/${other.accountId}/unlock`, {})
      expect((await newest(admin))?.action).toBe('rail.switched')

      const person = await newGuest(gateway.origin)
      const key = await person.send('POST', '/api/developer/keys', {
        name: 'K',
        scopes: ['wallets:transfer'],
        policy: { ...buildPolicy('5'), approval: { above: '1', ttlSec: 600 } },
      })
      const pendingTransfer = await requestJson(gateway.origin, 'POST', '/api/wallets/transfer', {
        body: { amount: '2', destination: `0x${'c1'.repeat(20)}`, signature: 'x' },
        headers: { authorization: `Bearer ${String(key.body.key)}` },
      })
      await person.send('POST', `/api/approvals/${String(pendingTransfer.body.approvalId)}`, {
        decision: 'reject',
      })
      expect(await newest(person)).toMatchObject({
        action: 'approval.rejected',
        after: { keyId: key.body.id },
      })
    },
  )

  it.skipIf(isSkipped)(
    'records nothing for a rejected change, and one entry for a repeated one',
    async () => {
      const before = await newest(owner)
      expect((await owner.send('PATCH', '/api/cards', { cardId: 'card_none', nickname: 'x' })).status).toBe(
        404,
      )
      expect(await newest(owner)).toEqual(before)
      const cap = { dailyBudget: { max: '8' } }
      const again = { 'idempotency-key': `cap-${engine}` }
      await owner.send('PUT', '/api/agents/policy', cap, again)
      const once = await newest(owner)
      await owner.send('PUT', '/api/agents/policy', cap, again)
      expect(await newest(owner)).toEqual(once)
    },
  )

  it.skipIf(isSkipped)('is paged, and shows no entries of other accounts', async () => {
    const all = (await readJournal(owner)).entries
    const first = await readJournal(owner, '?limit=2')
    const rest = await readJournal(owner, `?cursor=${first.nextCursor}`)
    expect([...first.entries, ...rest.entries]).toEqual(all)
    const outsider = await newGuest(gateway.origin)
    expect((await readJournal(outsider)).entries).toEqual([])
    expect((await requestJson(gateway.origin, 'GET', '/api/security/journal')).status).toBe(401)
  })

  it.skipIf(isSkipped)(
    'keeps one chain under parallel changes, which an export proves on another machine',
    async () => {
      const people = await Promise.all(Array.from({ length: 5 }, () => newGuest(gateway.origin)))
      await Promise.all(
        people.flatMap((person) =>
          ['1', '2', '3', '4'].map((max) =>
            person.send('PUT', '/api/agents/policy', { dailyBudget: { max: `${9 - Number(max)}` } }),
          ),
        ),
      )
      const none = {
        dailyMaxMicros: null,
        weeklyMaxMicros: null,
        monthlyMaxMicros: null,
        refundsRefill: true,
        approvals: [],
      }
      for (const person of people) {
        const { entries } = await readJournal(person)
        const [one] = (await readJournal(person, '?limit=1')).entries
        expect([entries.length, one]).toEqual([4, entries[0]])
        // Newest first is chain order: each `before` equals the previous `after`.
        for (const [at, { before }] of entries.entries())
          expect(before).toEqual(entries[at + 1]?.after ?? none)
      }
      await gateway.stop()
      const verified = await bursar(['audit', 'verify'], env)
      expect(verified).toMatchObject({
        code: 0,
        out: expect.stringMatching(/Journal: \d+ changes, chain intact/),
      })
      expect((await bursar(['audit', 'export', '--out', exported], env)).code).toBe(0)
      const lines = readFileSync(exported, 'utf8').trim().split('\n')
      const verify = (changed: readonly string[]) => {
        writeFileSync(exported, `${changed.join('\n')}\n`)
        return bursar(['audit', 'verify', '--from-export', exported])
      }
      expect((await verify(lines)).code).toBe(0)
      const last = lines.at(-1) ?? ''
      expect(last).toContain('"journal"')
      expect(await verify(lines.slice(0, -1))).toMatchObject({
        code: 1,
        out: expect.stringMatching(/it must end with/),
      })
      expect(await verify(lines.with(-1, last.replace('"person"', '"admin"')))).toMatchObject({
        code: 1,
        out: expect.stringMatching(/Journal broken at entry \d+: its content/),
      })
      expect(
        await verify(lines.with(0, (lines[0] ?? '').replace(/"signature":"\w{4}/, '"signature":"abcd'))),
      ).toMatchObject({ code: 1 })
    },
  )

  it.skipIf(isSkipped || engine === 'PGlite')(
    'names an entry that was changed, removed or added in the database',
    async () => {
      const database = await openPostgres({ url: env.DATABASE_URL ?? '' })
      const change = async (text: string) => {
        await database.call(
          { name: 'journal_off', text: 'alter table journal_entry disable trigger append_only' },
          [],
        )
        await database.call({ name: `journal_${text.length}`, text }, [])
      }
      await expect(
        database.call({ name: 'journal_delete', text: 'delete from journal_entry' }, []),
      ).rejects.toThrow(/append-only/)
      // Truncation leaves a shorter, intact chain: only a head kept elsewhere detects it.
      const { out } = await bursar(['audit', 'verify'], env)
      const head = /Journal: .* head \d+ ([0-9a-f]{64})/.exec(out)?.[1] ?? ''
      const withHead = () => bursar(['audit', 'verify', '--journal-head', head], env)
      expect((await withHead()).code).toBe(0)
      await change('create table dropped as select * from journal_entry order by sequence desc limit 1')
      await change('delete from journal_entry where sequence = (select sequence from dropped)')
      expect((await bursar(['audit', 'verify'], env)).code).toBe(0)
      expect(await withHead()).toMatchObject({
        code: 1,
        out: expect.stringMatching(
          /Journal broken at entry \d+: it does not contain the known head [0-9a-f]{64}/,
        ),
      })
      await change('insert into journal_entry select * from dropped')
      expect((await withHead()).code).toBe(0)
      await change(`insert into journal_entry select sequence + 1, 'jrn_forged', account_id, at, actor_kind, actor_id, action,
      object_kind, object_id, before, after, hash, hash, mac from journal_entry order by sequence desc limit 1`)
      expect((await bursar(['audit', 'verify'], env)).out).toMatch(/Journal broken at entry \d+: its content/)
      await change(`delete from journal_entry where id = 'jrn_forged'`)
      await change(`update journal_entry set actor_id = 'nobody' where sequence = 3`)
      expect(await bursar(['audit', 'verify'], env)).toMatchObject({
        code: 1,
        out: expect.stringMatching(/broken at entry 3/),
      })
      await change('delete from journal_entry where sequence = 2')
      expect((await bursar(['audit', 'verify'], env)).out).toMatch(/broken at entry 2: an entry is missing/)
      await database.close()
    },
  )
})
