import { compactVerify, createLocalJWKSet } from 'jose'
import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { decisionMac } from '../../../src/books/spending/authenticate.ts'
import { newId } from '../../../src/core/base/ids.ts'
import type { Json } from '../../../src/core/base/json.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { createSealRound } from '../../../src/records/decisions/seal-decisions.ts'
import decisions from '../../../tools/agents/decisions.ts'
import keysCreate from '../../../tools/developer/keys/create.ts'
import keysRevoke from '../../../tools/developer/keys/revoke.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import { newSignedIn, type SignedIn } from '../../people/identity/signed-in.ts'
import { never } from '../../records/decisions/scene.ts'

const answer = z.object({
  decisions: z.array(z.looseObject({ decisionId: z.string(), receipt: z.string() })),
  nextCursor: z.string().nullable(),
})
const violation = {
  rule: 'per_transaction',
  limit: '5',
  used: null,
  requested: '9',
  remaining: '5',
  resetsAt: null,
}

onBothEngines('GET /api/agents/decisions', (database) => {
  let services: Services
  let owner: SignedIn
  let outsider: SignedIn
  let keyId: string
  beforeAll(async () => {
    services = await servicesOn(database())
    owner = await newSignedIn(services)
    outsider = await newSignedIn(services)
    keyId = String((await owner.call(keysCreate, { name: 'Key', scopes: [] })).body.id)
    const insert = async (accountId: string, key: string | null, verdict: 'allow' | 'deny', facts: Json) => {
      const id = newId('dec', new Date(noon.getTime() + sequence++))
      const content = {
        decisionId: id,
        at: noon.toISOString(),
        accountId,
        keyId: key,
        operation: 'wallets.transfer',
        verdict,
        policyVersion: key === null ? null : 1,
        policyHash: null,
        facts,
        violations: verdict === 'deny' ? [violation] : [],
        availableUnits: null,
      }
      await database()
        .kysely.insertInto('decision')
        .values({
          id,
          at: noon,
          mac: decisionMac(services.settings.dataKey, content),
          account_id: accountId,
          key_id: key,
          policy_version: key === null ? null : 1,
          policy_hash: null,
          operation: 'wallets.transfer',
          facts: JSON.stringify(facts),
          verdict,
          violations: JSON.stringify(verdict === 'deny' ? [violation] : []),
          available_units: null,
        })
        .execute()
    }
    let sequence = 0
    await insert(owner.accountId, null, 'allow', {})
    await insert(owner.accountId, keyId, 'deny', {
      category: 'transfer',
      amount: '9',
      asset: 'EURC',
      usdMicros: '10260000',
      chain: 'base-sepolia',
      counterparty: '0xabc',
      added: 'later',
      found: { note: 'kept' },
    })
    await insert(owner.accountId, keyId, 'allow', { usdMicros: 'null', amount: 5 })
    await insert(outsider.accountId, null, 'allow', {})
  })
  const list = async (input: unknown, person = owner) =>
    answer.parse((await person.call(decisions, input)).body)

  it('shows the account’s own decisions, newest first, regardless of their facts', async () => {
    const { decisions: shown, nextCursor } = await list({})
    expect(nextCursor).toBeNull()
    expect(shown).toMatchObject([
      { agentId: keyId, verdict: 'allow', usd: null, amount: null, violations: [] },
      {
        at: noon.toISOString(),
        agentId: keyId,
        operation: 'wallets.transfer',
        verdict: 'deny',
        amount: '9',
        asset: 'EURC',
        usd: '10.26',
        category: 'transfer',
        counterparty: '0xabc',
        chain: 'base-sepolia',
        policyVersion: 1,
        violations: [violation],
        sequence: null,
        hash: null,
      },
      { agentId: null, verdict: 'allow', asset: null },
    ])
    expect((await list({}, outsider)).decisions).toHaveLength(1)
  })

  it('filters by key and by verdict, in pages', async () => {
    expect((await list({ keyId })).decisions).toHaveLength(2)
    expect((await list({ keyId, verdict: 'deny' })).decisions).toMatchObject([{ amount: '9' }])
    expect((await list({ verdict: 'approval_required' })).decisions).toEqual([])
    const first = await list({ limit: 2 })
    const second = await list({ limit: 2, cursor: first.nextCursor })
    expect([first.decisions.length, second.decisions.length, second.nextCursor]).toEqual([2, 1, null])
    expect([...first.decisions, ...second.decisions].map(({ decisionId }) => decisionId)).toEqual(
      (await list({})).decisions.map(({ decisionId }) => decisionId),
    )
  })

  it('returns the same receipt before and after sealing, then with its place in the chain', async () => {
    const before = (await list({})).decisions
    await createSealRound(services)(never)
    const after = (await list({})).decisions
    expect(after.map(({ receipt }) => receipt)).toEqual(before.map(({ receipt }) => receipt))
    expect(after.map(({ sequence }) => sequence)).toEqual([3, 2, 1])
    expect(after[0]).toMatchObject({ hash: expect.stringMatching(/^[0-9a-f]{64}$/) })
    const keys = createLocalJWKSet(services.settings.receiptKey.keySet)
    const { payload } = await compactVerify(after[1]?.receipt ?? '', keys)
    expect(JSON.parse(Buffer.from(payload).toString())).toMatchObject({ facts: { added: 'later' } })
    expect(Buffer.from(payload).toString()).not.toContain('kept')
  })

  it('finds no decision of a foreign key, and still those of a revoked own one', async () => {
    for (const id of [newId('key', noon), 'key_x'])
      await expect(owner.call(decisions, { keyId: id })).rejects.toMatchObject({ code: 'not_found' })
    await expect(outsider.call(decisions, { keyId })).rejects.toMatchObject({ code: 'not_found' })
    await owner.call(keysRevoke, { id: keyId })
    expect((await list({ keyId })).decisions).toHaveLength(2)
  })
})
