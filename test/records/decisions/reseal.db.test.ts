/** Sealed data under a new data key: every place is known, and a run can be repeated and interrupted. */
import { readFileSync } from 'node:fs'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { newId } from '../../../src/core/base/ids.ts'
import { keyedHash, seal, unseal } from '../../../src/core/base/seal.ts'
import { createAccount } from '../../../src/people/identity/accounts.ts'
import { openDataKey, storeRoot } from '../../../src/records/decisions/data-key.ts'
import { claimDeployment } from '../../../src/records/decisions/deployment.ts'
import { reseal, sealedColumns } from '../../../src/records/decisions/reseal.ts'
import { onBothEngines } from '../../engines.ts'
import { filesBelow } from '../../files.ts'
import { noon } from '../../kernel/scene.ts'

const [first, second, third] = ['1', '2', '3'].map((digit) => digit.repeat(32)) as [string, string, string]

describe('the list of sealed columns', () => {
  it('has every purpose that the code seals for', () => {
    const texts = filesBelow('src').map((file) => readFileSync(file, 'utf8'))
    const sealing = texts.filter((text) => /\bseal\(/.test(text)).join('\n')
    const found = [...sealing.matchAll(/\b(?:\w*PURPOSE|SEAL) = '([^']+)'|purpose: '([^']+)'/g)].map(
      ([, one, other]) => one ?? other ?? '',
    )
    // Offers are with their clients; the root is sealed by the rotation itself.
    const elsewhere = ['x402 offer', 'root key']
    expect([...new Set(found)].filter((purpose) => !elsewhere.includes(purpose)).sort()).toEqual(
      [...new Set(sealedColumns.map(({ purpose }) => purpose))].sort(),
    )
  })
})

onBothEngines('sealed data under a new key', (database) => {
  it('is in every binary column that holds neither a hash nor a public key', async () => {
    const { rows } = await sql<{ name: string }>`
      select table_name || '.' || column_name as name from information_schema.columns
      where table_schema = 'public' and data_type = 'bytea'`.execute(database().kysely)
    const binary = rows.map(({ name }) => name).filter((name) => !/hash$|public_key$/.test(name))
    const known = sealedColumns.filter(({ member }) => member === undefined)
    expect(binary.sort()).toEqual(known.map(({ table, column }) => `${table}.${column}`).sort())
  })

  it('is read meanwhile, counted once, and told where no key opens it', async () => {
    const { kysely } = database()
    const before = Buffer.from(first)
    await claimDeployment(database(), { dataKey: before, chainId: null, chainOwners: null }, noon)
    const ids: string[] = []
    for (const name of ['ada', 'grace', 'mallory']) {
      const { id } = await createAccount(
        { database: database(), newId },
        { displayName: name, guest: false, at: noon },
      )
      ids.push(id)
      const sealed_secret = seal(before, { purpose: 'mfa', owner: id }, `secret of ${name}`)
      await kysely
        .insertInto('mfa')
        .values({ account_id: id, sealed_secret, status: 'pending', created_at: noon })
        .execute()
    }
    const [ada = '', grace = '', mallory = ''] = ids
    const facts = {
      hash: 'h',
      sealedCode: seal(before, { purpose: 'code', owner: 'chal_1' }, '123456'),
      sealedAddress: seal(before, { purpose: 'address', owner: 'h' }, 'ada@example.com'),
    }
    const written = Object.entries(facts).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : Buffer.from(value).toString('base64url'),
    ])
    await kysely
      .insertInto('challenge')
      .values({
        id: 'chal_1',
        kind: 'otp',
        subject: 'h',
        facts: JSON.stringify(Object.fromEntries(written)),
        created_at: noon,
        expires_at: noon,
      })
      .execute()
    // Nobody can open what was moved from another row.
    const moved = await kysely
      .selectFrom('mfa')
      .select('sealed_secret')
      .where('account_id', '=', ada)
      .executeTakeFirstOrThrow()
    await kysely.updateTable('mfa').set(moved).where('account_id', '=', mallory).execute()

    const rotating = await openDataKey(database(), { current: second, previous: first })
    const createSecret = async (id: string, key = rotating) => {
      const row = await kysely
        .selectFrom('mfa')
        .select('sealed_secret')
        .where('account_id', '=', id)
        .executeTakeFirstOrThrow()
      return unseal(key, { purpose: 'mfa', owner: id }, row.sealed_secret)
    }
    expect(await createSecret(grace)).toBe('secret of grace')
    const run = async () => {
      const all = []
      for (const place of sealedColumns) all.push(await reseal(database(), rotating, place))
      return all
        .filter(({ changed, unreadable }) => changed + unreadable.length > 0)
        .map(({ name, changed, unreadable }) => [name, changed, unreadable])
    }
    expect(await run()).toEqual([
      ['mfa.sealed_secret', 2, [mallory]],
      ['challenge.facts.sealedCode', 1, []],
      ['challenge.facts.sealedAddress', 1, []],
    ])
    expect(await run()).toEqual([['mfa.sealed_secret', 0, [mallory]]])

    // The new key alone opens it; hashes stay those of the first.
    await storeRoot(database(), rotating, noon)
    const after = await openDataKey(database(), { current: second, previous: null })
    expect([await createSecret(ada, after), await createSecret(ada)]).toEqual([
      'secret of ada',
      'secret of ada',
    ])
    await expect(createSecret(ada, before)).rejects.toThrow()
    expect(keyedHash(after, 'destination', 'x')).toBe(keyedHash(before, 'destination', 'x'))
    const challenge = await kysely.selectFrom('challenge').select('facts').executeTakeFirstOrThrow()
    const code = JSON.parse(JSON.stringify(challenge.facts)).sealedCode
    expect(unseal(after, { purpose: 'code', owner: 'chal_1' }, Buffer.from(code, 'base64url'))).toBe('123456')
    await expect(openDataKey(database(), { current: first, previous: null })).rejects.toThrow('rotated to')

    // And once more, from the second key to a third.
    const again = await openDataKey(database(), { current: third, previous: second })
    for (const place of sealedColumns) await reseal(database(), again, place)
    await storeRoot(database(), again, noon)
    const last = await openDataKey(database(), { current: third, previous: null })
    expect([await createSecret(grace, last), Buffer.from(last).toString()]).toEqual([
      'secret of grace',
      first,
    ])
    await expect(openDataKey(database(), { current: second, previous: null })).rejects.toThrow('rotated to')
  })
})
