/** The journal of what people and administrators change: over real HTTP, on both engines, and by `bursar audit`. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { openPostgres } from '../../src/storage/postgres.ts'
import { bursar } from '../commands/bursar.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { newAgent } from './agent.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { askJson, enrollMfa, newGuest, type Person, signInByEmail } from './people.ts'

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
      hash: z.string().regex(/^[0-9a-f]{64}$/),
    }),
  ),
  nextCursor: z.string().nullable(),
})
const cards = z.object({ cards: z.array(z.looseObject({ id: z.string() })) })
const policyOf = (max: string) => ({
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
  const journalOf = async (who: Person, query = '') =>
    answer.parse((await who.ask('GET', `/api/security/journal${query}`)).body)
  const newest = async (who: Person) => (await journalOf(who)).entries[0]
  beforeAll(async () => {
    if (isSkipped) return
    const created = engine === 'PGlite' ? null : await createTestDatabase(testServerUrl ?? '')
    drop = created?.drop ?? drop
    if (created !== null) env.DATABASE_URL = created.url
    gateway = await startGateway({ ...env, RATE_OTP_RESEND: '100/1' })
    owner = await newGuest(gateway.origin)
  })
  afterAll(async () => {
    await gateway?.stop()
    await drop()
    rmSync(directory, { recursive: true, force: true })
  })

  it.skipIf(isSkipped)(
    'tells who changed a policy, with the state before and after and without names',
    async () => {
      const agent = await newAgent()
      const { body } = await owner.ask('POST', '/api/agents/keys', {
        name: 'A name that nobody reads',
        publicKey: agent.jwk,
        scopes: ['wallets:transfer'],
        policy: policyOf('5'),
      })
      const id = String(body.agentId)
      const actor = { kind: 'person', id: owner.accountId }
      expect(await newest(owner)).toMatchObject({ actor, action: 'key.created', object: { kind: 'key', id } })
      await owner.ask('PATCH', `/api/agents/keys/${id}`, { policy: policyOf('3') })
      expect(await newest(owner)).toMatchObject({
        actor,
        action: 'key.updated',
        before: { policy: { perTransaction: { max: '5' } }, policyVersion: 1 },
        after: { policy: { perTransaction: { max: '3' } }, policyVersion: 2 },
      })
      await owner.ask('POST', `/api/agents/keys/${id}/pause`, {})
      expect(await newest(owner)).toMatchObject({
        action: 'key.paused',
        before: { status: 'active' },
        after: { status: 'paused' },
      })
      await owner.ask('PUT', '/api/agents/policy', { dailyBudget: { max: '9' } })
      expect((await newest(owner))?.action).toBe('policy.owner_cap_set')
      await owner.ask('DELETE', `/api/agents/keys/${id}`)
      expect((await newest(owner))?.action).toBe('key.revoked')
      expect(JSON.stringify(await journalOf(owner))).not.toContain('A name that nobody reads')
    },
  )

  it.skipIf(isSkipped)('tells what a key does to a card, as the key', async () => {
    const [card] = cards.parse((await owner.ask('GET', '/api/cards')).body).cards
    await owner.ask('POST', '/api/cards/settings', { cardId: card?.id, freeze: true })
    expect(await newest(owner)).toMatchObject({
      action: 'card.updated',
      object: { kind: 'card', id: card?.id },
      before: { status: 'active' },
      after: { status: 'frozen' },
    })
    const made = await owner.ask('POST', '/api/developer/keys', {
      name: 'K',
      scopes: ['cards:write'],
      policy: policyOf('5'),
    })
    await owner.ask('PATCH', '/api/cards', { cardId: card?.id, agentId: made.body.id })
    const changed = await askJson(gateway.origin, 'POST', '/api/cards/settings', {
      body: { cardId: card?.id, limits: { daily: '1' } },
      headers: { authorization: `Bearer ${String(made.body.key)}` },
    })
    expect(changed.status).toBe(200)
    expect((await newest(owner))?.actor).toEqual({ kind: 'key', id: made.body.id })
  })

  it.skipIf(isSkipped)(
    'tells of factors, locks, approvals and rails, each to the account that it is about',
    async () => {
      const admin = await signInByEmail(gateway.origin, `warden-${engine.toLowerCase()}@example.com`)
      await admin.ask('POST', '/sandbox/admin', {})
      await enrollMfa(admin)
      expect(await newest(admin)).toMatchObject({ action: 'factor.added', object: { kind: 'totp' } })
      await admin.ask('PUT', '/api/rails/wallet-gasless/controls', { enabled: true })
      expect(await newest(admin)).toMatchObject({
        actor: { kind: 'admin', id: admin.accountId },
        action: 'rail.switched',
        object: { kind: 'rail', id: 'wallet-gasless' },
        after: { enabled: true },
      })
      const other = await newGuest(gateway.origin)
      await admin.ask('POST', `/api/admin/accounts/${other.accountId}/lock`, {})
      await admin.ask('POST', `/api/admin/accounts/${other.accountId}/unlock`, {})
      expect((await newest(admin))?.action).toBe('rail.switched')

      const person = await newGuest(gateway.origin)
      const key = await person.ask('POST', '/api/developer/keys', {
        name: 'K',
        scopes: ['wallets:transfer'],
        policy: { ...policyOf('5'), approval: { above: '1', ttlSec: 600 } },
      })
      const asked = await askJson(gateway.origin, 'POST', '/api/wallets/transfer', {
        body: { amount: '2', destination: `0x${'c1'.repeat(20)}`, signature: 'x' },
        headers: { authorization: `Bearer ${String(key.body.key)}` },
      })
      await person.ask('POST', `/api/approvals/${String(asked.body.approvalId)}`, { decision: 'reject' })
      expect(await newest(person)).toMatchObject({
        action: 'approval.rejected',
        after: { keyId: key.body.id },
      })
    },
  )

  it.skipIf(isSkipped)(
    'writes nothing of a change that is refused, and one entry of a repeated one',
    async () => {
      const before = await newest(owner)
      expect((await owner.ask('PATCH', '/api/cards', { cardId: 'card_none', nickname: 'x' })).status).toBe(
        404,
      )
      expect(await newest(owner)).toEqual(before)
      const cap = { dailyBudget: { max: '8' } }
      const again = { 'idempotency-key': `cap-${engine}` }
      await owner.ask('PUT', '/api/agents/policy', cap, again)
      const once = await newest(owner)
      await owner.ask('PUT', '/api/agents/policy', cap, again)
      expect(await newest(owner)).toEqual(once)
    },
  )

  it.skipIf(isSkipped)('is paged, and shows nobody else’s', async () => {
    const all = (await journalOf(owner)).entries
    const first = await journalOf(owner, '?limit=2')
    const rest = await journalOf(owner, `?cursor=${first.nextCursor}`)
    expect([...first.entries, ...rest.entries]).toEqual(all)
    const stranger = await newGuest(gateway.origin)
    expect((await journalOf(stranger)).entries).toEqual([])
    expect((await askJson(gateway.origin, 'GET', '/api/security/journal')).status).toBe(401)
  })

  it.skipIf(isSkipped)(
    'keeps one chain through parallel changes, which an export proves elsewhere',
    async () => {
      const people = await Promise.all(Array.from({ length: 5 }, () => newGuest(gateway.origin)))
      await Promise.all(
        people.flatMap((person) =>
          ['1', '2', '3', '4'].map((max) =>
            person.ask('PUT', '/api/agents/policy', { dailyBudget: { max: `${9 - Number(max)}` } }),
          ),
        ),
      )
      await gateway.stop()
      const verified = await bursar(['audit', 'verify'], env)
      expect(verified).toMatchObject({
        code: 0,
        out: expect.stringMatching(/Journal: \d\d changes, chain intact/),
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
