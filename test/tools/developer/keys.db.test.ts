import { beforeAll, beforeEach, expect, it } from 'vitest'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { authenticateApiKey } from '../../../src/people/identity/keys/api-keys.ts'
import create from '../../../tools/developer/keys/create.ts'
import list from '../../../tools/developer/keys/list.ts'
import revoke from '../../../tools/developer/keys/revoke.ts'
import walletsGet from '../../../tools/wallets/get.ts'
import transfer from '../../../tools/wallets/transfer.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, noon, servicesOn } from '../../kernel/scene.ts'
import { newSignedIn, type SignedIn } from '../../people/identity/signed-in.ts'

const after = (seconds: number) => new Date(noon.getTime() + seconds * 1000)
const policy = {
  perTransaction: { max: '5' },
  dailyBudget: { max: '12' },
  categories: { allow: ['transfer'] },
}
const spender = { name: 'Payer', scopes: ['wallets:transfer'], policy }

onBothEngines('developer API keys', (database) => {
  let services: Services
  let person: SignedIn
  const authenticate = (secret: string, at = noon) => authenticateApiKey(database(), secret, at)
  const createSecret = async (input: unknown) => String((await person.call(create, input)).body.key)

  beforeAll(async () => {
    services = await servicesOn(database())
  })
  beforeEach(async () => {
    person = await newSignedIn(services)
  })

  it('are shown once and stored as a hash', async () => {
    const { body } = await person.call(create, spender)
    expect(body).toMatchObject({
      id: expect.stringMatching(/^key_/),
      key: expect.stringMatching(/^bsk_sandbox_[\w-]{49}$/),
      status: 'active',
      scopes: ['wallets:transfer'],
      policy: { currency: 'USD', dailyBudget: { max: '12' } },
      expiresAt: null,
    })
    await expect(authenticate(String(body.key))).resolves.toMatchObject({
      kind: 'key',
      account: { id: person.accountId },
      key: { id: body.id, kind: 'developer' },
    })
    const { body: shown } = await person.call(list, {})
    expect(shown).toMatchObject({ keys: [{ id: body.id, name: 'Payer' }], nextCursor: null })
    const rows = await database().kysely.selectFrom('access_key').selectAll().execute()
    for (const text of [JSON.stringify(shown), JSON.stringify(rows)]) expect(text).not.toContain(body.key)
  })

  it('are created once per idempotency key, and the second answer has no secret', async () => {
    const createTwice = () => person.call(create, spender, { idempotencyKey: 'create-1' })
    const [first, second] = [await createTwice(), await createTwice()]
    expect(second).toMatchObject({ replayed: true, body: { id: first.body.id, key: null } })
    const kept = await database().kysely.selectFrom('idempotency').select('answer').execute()
    expect(JSON.stringify(kept)).not.toContain(String(first.body.key))
  })

  it('need a policy to spend, known scopes, and a future expiry', async () => {
    for (const input of [
      { name: 'Payer', scopes: ['wallets:transfer'] },
      { name: '', scopes: [] },
      { name: 'x', scopes: ['admin'] },
      { name: 'x', scopes: [], expiresAt: after(-1).toISOString() },
      { name: 'x', scopes: [], role: 'admin' },
    ])
      await expect(person.call(create, input)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('end when they expire, and at once when they are revoked', async () => {
    const brief = await createSecret({ name: 'x', scopes: [], expiresAt: after(60).toISOString() })
    await expect(authenticate(brief, after(59))).resolves.toBeDefined()
    await expect(authenticate(brief, after(60))).rejects.toMatchObject({ code: 'unknown_key' })
    const { body } = await person.call(create, spender)
    const outsider = await newSignedIn(services)
    await expect(outsider.call(revoke, { id: body.id })).rejects.toMatchObject({ code: 'not_found' })
    await expect(person.call(revoke, { id: body.id })).resolves.toBeDefined()
    await expect(authenticate(String(body.key))).rejects.toMatchObject({ code: 'unknown_key' })
    await expect(person.call(revoke, { id: body.id })).rejects.toMatchObject({ code: 'not_found' })
    expect(JSON.stringify((await person.call(list, {})).body)).not.toContain(body.id)
  })

  it('are listed to their owner alone', async () => {
    await person.call(create, spender)
    const outsider = await newSignedIn(services)
    await expect(outsider.call(list, {})).resolves.toMatchObject({ body: { keys: [] } })
  })

  it('never perform personal operations, whatever their scopes', async () => {
    const principal = await authenticate(await createSecret(spender))
    for (const tool of [create, list, revoke])
      await expect(run(tool, buildCall(services, principal), tool.example)).rejects.toMatchObject({
        code: 'insufficient_scope',
      })
    await expect(run(walletsGet, buildCall(services, principal), {})).rejects.toMatchObject({
      code: 'insufficient_scope',
      members: { scopes: ['wallets:read'] },
    })
  })

  it('never pass a disabled rail', async () => {
    const principal = await authenticate(await createSecret(spender))
    await services.railControls.write(
      { rail: 'wallet-transfer', enabled: false, reason: 'Maintenance.' },
      noon,
    )
    await expect(run(transfer, buildCall(services, principal), transfer.example)).rejects.toMatchObject({
      code: 'rail_disabled',
    })
    await services.railControls.write({ rail: 'wallet-transfer', enabled: true, reason: null }, noon)
  })
})
