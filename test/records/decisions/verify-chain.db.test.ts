import { beforeAll, expect, it } from 'vitest'
import { signJws } from '../../../src/core/base/jws.ts'
import { chainHash } from '../../../src/records/decisions/chain.ts'
import {
  formatLine,
  headerLine,
  parseHeader,
  parseLine,
} from '../../../src/records/decisions/export-lines.ts'
import { auditUnsealed } from '../../../src/records/decisions/judge-decision.ts'
import { signReceipt } from '../../../src/records/decisions/receipt.ts'
import { createSealRound } from '../../../src/records/decisions/seal-decisions.ts'
import { deriveSigningKey, type KeySet, type SigningKey } from '../../../src/records/decisions/signing-key.ts'
import {
  readHead,
  readSealed,
  type SealedDecision,
  sealedPages,
} from '../../../src/records/decisions/store.ts'
import { verifyChain } from '../../../src/records/decisions/verify-chain.ts'
import type { Connection } from '../../../src/storage/database.ts'
import { noon } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import { insertDecisions, never, newSpender, readChain, sealingDependencies, settings } from './scene.ts'

const ROWS = 12

onBothEngines('a chain', (database) => {
  let key: SigningKey
  let keySet: KeySet
  let ids: string[]
  beforeAll(async () => {
    key = await deriveSigningKey(settings.dataKey)
    keySet = key.keySet
    const spender = await newSpender(database())
    for (let made = 0; made < ROWS; made += 1) await spender.decide()
    await createSealRound(sealingDependencies(database()))(never)
    ids = (await readChain(database())).map(({ decision_id }) => decision_id)
  })

  /** The verification result after a change that bypassed the triggers. The change is undone. */
  const verifyAfter = async (change: (connection: Connection) => Promise<unknown>, keys = keySet) => {
    const undone = new Error('undone')
    let report: Awaited<ReturnType<typeof verifyChain>> | undefined
    await database()
      .transaction(async (connection) => {
        for (const table of ['decision', 'decision_seal'])
          await connection.call(
            { name: `disable_${table}`, text: `alter table ${table} disable trigger user` },
            [],
          )
        await change(connection)
        report = await verifyChain(sealedPages(connection), { keySet: keys })
        throw undone
      })
      .catch((error: unknown) => {
        if (error !== undone) throw error
      })
    return report
  }
  const run =
    (text: string, ...parameters: string[]) =>
    (connection: Connection) =>
      connection.call({ name: `change_${text}_${parameters.length}`.slice(0, 60), text }, parameters)
  const fifth = () => ids[4] ?? ''

  it('is intact after sealing', async () => {
    const report = await verifyChain(sealedPages(database()), { keySet })
    expect(report).toEqual({ head: await readHead(database()), fault: null })
    expect(report.head.sequence).toBe(BigInt(ROWS))
  })

  it.each([
    ['an amount', `update decision set facts = facts || '{"amount":"1.26"}' where id = $1`],
    ['a note of the operation', `update decision set facts = facts || '{"found":{}}' where id = $1`],
    ['the verdict', `update decision set verdict = 'deny' where id = $1`],
    ['the time by a microsecond', `update decision set at = at + interval '1 microsecond' where id = $1`],
    ['whose key it was', `update decision set key_id = null where id = $1`],
    ['the policy', `update decision set policy_hash = 'other' where id = $1`],
    ['the hash', `update decision_seal set hash = repeat('a', 64) where decision_id = $1`],
  ])('reports where %s was changed', async (_what, text) => {
    expect(await verifyAfter(run(text, fifth()))).toMatchObject({
      head: { sequence: 4n },
      fault: { sequence: 5n, decisionId: fifth(), kind: 'content changed' },
    })
  })

  it('reports a deleted decision', async () => {
    expect((await verifyAfter(run('delete from decision where id = $1', fifth())))?.fault).toMatchObject({
      sequence: 5n,
      decisionId: fifth(),
      kind: 'row missing',
    })
  })

  it('reports a deleted row of the chain', async () => {
    const change = run('delete from decision_seal where decision_id = $1', fifth())
    expect((await verifyAfter(change))?.fault).toMatchObject({
      sequence: 5n,
      decisionId: null,
      kind: 'row missing',
      detail: `the next row is 6 (${ids[5]})`,
    })
  })

  it('reports a changed link', async () => {
    const change = run("update decision_seal set previous = repeat('b', 64) where decision_id = $1", fifth())
    expect((await verifyAfter(change))?.fault).toMatchObject({ sequence: 5n, kind: 'link broken' })
  })

  it('reports a changed signature, and an unknown key', async () => {
    const change = run(
      'update decision_seal set receipt = left(receipt, -4) || reverse(right(receipt, 4)) where decision_id = $1',
      fifth(),
    )
    expect((await verifyAfter(change))?.fault).toMatchObject({ sequence: 5n, kind: 'signature invalid' })
    const other = await deriveSigningKey(Buffer.from('another data key of many letters'))
    expect((await verifyAfter(async () => {}, other.keySet))?.fault).toMatchObject({
      sequence: 1n,
      decisionId: ids[0],
      kind: 'signature invalid',
    })
  })

  it('reports a receipt that belongs to another decision', async () => {
    const change = run(
      'update decision_seal set receipt = (select receipt from decision_seal where sequence = 1) where decision_id = $1',
      fifth(),
    )
    expect((await verifyAfter(change))?.fault).toMatchObject({ sequence: 5n, kind: 'signature invalid' })
    const [first] = await readSealed(database(), { after: 0n, limit: 1 })
    // As receipts were stored before they were detached.
    const whole = run(
      'update decision_seal set receipt = $2, issuer = null where decision_id = $1',
      fifth(),
      first?.receipt ?? '',
    )
    expect((await verifyAfter(whole))?.fault).toMatchObject({ sequence: 5n, kind: 'receipt contradicts' })
  })

  it('reports a receipt of another gateway, and reads one that is stored whole', async () => {
    const other = run(
      "update decision_seal set issuer = 'https://other.example' where decision_id = $1",
      fifth(),
    )
    expect((await verifyAfter(other))?.fault).toMatchObject({ sequence: 5n, kind: 'signature invalid' })
    const [sealed] = await readSealed(database(), { after: 4n, limit: 1 })
    const whole = run(
      'update decision_seal set receipt = $2, issuer = null where decision_id = $1',
      fifth(),
      sealed?.receipt ?? '',
    )
    expect((await verifyAfter(whole))?.fault).toBeNull()
  })

  it('detects a changed decision despite recomputed hashes', async () => {
    const forge = async (connection: Connection) => {
      await run(`update decision set facts = '{"amount":"0.01"}' where id = $1`, fifth())(connection)
      let previous = '0'.repeat(64)
      for await (const page of sealedPages(connection))
        for (const { sequence, content } of page) {
          if (content === null) throw new Error('missing')
          const hash = chainHash(previous, content)
          await connection.kysely
            .updateTable('decision_seal')
            .set({ previous, hash })
            .where('sequence', '=', sequence)
            .execute()
          previous = hash
        }
    }
    expect((await verifyAfter(forge))?.fault).toMatchObject({
      sequence: 5n,
      decisionId: fifth(),
      kind: 'signature invalid',
    })
  })

  it('rejects another document signed with the same key as a receipt', async () => {
    const [sealed] = await readSealed(database(), { after: 4n, limit: 1 })
    const [, payload = ''] = (sealed?.receipt ?? '').split('.')
    const other = await signJws(key, {
      type: 'something-else+jwt',
      payload: Buffer.from(payload, 'base64url').toString(),
    })
    const change = run(
      'update decision_seal set receipt = $2, issuer = null where decision_id = $1',
      fifth(),
      other,
    )
    expect((await verifyAfter(change))?.fault).toMatchObject({ sequence: 5n, kind: 'signature invalid' })
  })

  it('counts unsealed decisions', async () => {
    const undone = new Error('undone')
    await database()
      .transaction(async (connection) => {
        await insertDecisions(connection, 3)
        expect(await auditUnsealed(connection, { dataKey: settings.dataKey, now: noon })).toEqual({
          count: 3n,
          refused: [],
        })
        throw undone
      })
      .catch((error: unknown) => expect(error).toBe(undone))
  })

  it('is unchanged by an export, and receipts are deterministic', async () => {
    const head = await readHead(database())
    const rows: SealedDecision[] = []
    for await (const page of sealedPages(database())) rows.push(...page)
    const parsed = rows.map((row) => parseLine(formatLine(row)))
    expect(parsed).toEqual(rows)
    const header = {
      format: 'bursar-decisions/1' as const,
      iss: settings.origin,
      jwks: keySet,
      head: { sequence: Number(head.sequence), hash: head.hash },
    }
    expect(parseHeader(headerLine(header))).toEqual(header)
    for (const { content, receipt } of rows) {
      if (content === null) throw new Error('missing')
      expect(await signReceipt(key, { issuer: settings.origin, content })).toBe(receipt)
    }
  })

  it('stops at lines that were dropped, doubled, swapped or truncated', async () => {
    const rows: (SealedDecision | null)[] = []
    for await (const page of sealedPages(database())) rows.push(...page)
    const expected = await readHead(database())
    const verify = async (changed: (SealedDecision | null)[]) => {
      async function* pages() {
        yield changed
      }
      return (await verifyChain(pages(), { keySet, expected })).fault
    }
    const [first = null, second = null, third = null, ...others] = rows
    expect(await verify(rows)).toBeNull()
    expect(await verify([first, third, ...others])).toMatchObject({ sequence: 2n, kind: 'row missing' })
    expect(await verify([first, second, second, third])).toMatchObject({ sequence: 2n, kind: 'link broken' })
    expect(await verify([second, first, third])).toMatchObject({ sequence: 1n, kind: 'row missing' })
    expect(await verify([first, null, third])).toMatchObject({ sequence: 2n, kind: 'row unreadable' })
    expect(await verify(rows.slice(0, -1))).toMatchObject({ sequence: BigInt(ROWS), kind: 'row missing' })
    expect(await verify([])).toMatchObject({ sequence: 1n, kind: 'row missing' })
  })

  it('cannot be changed or emptied while its trigger is there', async () => {
    for (const text of [
      "update decision_seal set hash = 'x'",
      'delete from decision_seal',
      'truncate decision_seal',
    ])
      await expect(database().call({ name: `refused_${text.slice(0, 8)}`, text }, [])).rejects.toThrow(
        /append-only/,
      )
  })
})
