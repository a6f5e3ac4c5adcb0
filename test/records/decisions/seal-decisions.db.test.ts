import { compactVerify, createLocalJWKSet } from 'jose'
import { beforeAll, expect, it } from 'vitest'
import { newId } from '../../../src/core/base/ids.ts'
import { createSealRound } from '../../../src/records/decisions/seal-decisions.ts'
import { deriveSigningKey } from '../../../src/records/decisions/signing-key.ts'
import { readSealed, sealedPages } from '../../../src/records/decisions/store.ts'
import { verifyChain } from '../../../src/records/decisions/verify-chain.ts'
import type { Database } from '../../../src/storage/database.ts'
import { noon } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import { insertDecisions, never, newSpender, readChain, sealingDependencies, settings } from './scene.ts'

onBothEngines('sealing', (database) => {
  let spender: Awaited<ReturnType<typeof newSpender>>
  let seal: () => Promise<number>
  beforeAll(async () => {
    spender = await newSpender(database())
    const round = createSealRound(sealingDependencies(database()))
    seal = () => round(never)
  })
  const sealedIds = async () => (await readChain(database())).map(({ decision_id }) => decision_id)
  const intact = async () => {
    const { keySet } = await deriveSigningKey(settings.dataKey)
    return (await verifyChain(sealedPages(database()), { keySet })).fault
  }

  it('has nothing to do without decisions', async () => {
    expect(await seal()).toBe(0)
    expect(await readChain(database())).toEqual([])
  })

  it('appends decisions of every verdict to the chain, by id, once', async () => {
    const violations = [
      { rule: 'category', limit: '', used: null, requested: null, remaining: null, resetsAt: null },
    ]
    const ids = [
      await spender.decide(),
      await spender.decide({ violations }),
      await spender.decide({}, { units: 10n ** 15n }),
    ]
    expect(await seal()).toBe(3)
    expect(await seal()).toBe(0)
    expect(await sealedIds()).toEqual(ids.sort())
    const chain = await readChain(database())
    expect(chain.map(({ sequence }) => sequence)).toEqual([1n, 2n, 3n])
    expect(chain[0]?.previous).toBe('0'.repeat(64))
    expect(chain.map(({ previous }) => previous).slice(1)).toEqual(chain.map(({ hash }) => hash).slice(0, 2))
    expect(await intact()).toBeNull()
  })

  it('signs a receipt of the row’s content, without the operation’s internal notes', async () => {
    const id = await spender.decide()
    await seal()
    const row = await database()
      .kysely.selectFrom('decision')
      .selectAll()
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    const sealed = await readSealed(database(), { after: 0n, limit: 10_000 })
    const receipt = sealed.find(({ decisionId }) => decisionId === id)?.receipt ?? ''
    const { keySet, keyId } = await deriveSigningKey(settings.dataKey)
    const { payload, protectedHeader } = await compactVerify(
      receipt,
      createLocalJWKSet({ keys: [...keySet.keys] }),
    )
    expect(protectedHeader).toEqual({ alg: 'EdDSA', kid: keyId, typ: 'bursar-decision+jwt' })
    expect(JSON.parse(Buffer.from(payload).toString())).toEqual({
      iss: settings.origin,
      decisionId: id,
      at: noon.toISOString(),
      accountId: spender.accountId,
      keyId: spender.keyId,
      operation: row.operation,
      verdict: 'allow',
      policyVersion: 1,
      policyHash: 'hash',
      facts: { category: 'transfer', amount: '1.25', asset: 'USDC' },
      violations: [],
      availableUnits: null,
      contentHash: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
  })

  it('seals several batches and pages without a gap', async () => {
    await insertDecisions(database(), 2_300)
    const before = (await readChain(database())).length
    expect(await seal()).toBe(2_300)
    const chain = await readChain(database())
    expect(chain.map(({ sequence }) => sequence)).toEqual(chain.map((_row, at) => BigInt(at + 1)))
    expect(chain).toHaveLength(before + 2_300)
    expect(await intact()).toBeNull()
  })

  it('resumes after a batch was rolled back', async () => {
    const before = await readChain(database())
    const id = await spender.decide()
    const failing: Database = {
      ...database(),
      transaction: (work) =>
        database().transaction(async (connection) => {
          await work(connection)
          throw new Error('the process ended')
        }),
    }
    await expect(createSealRound(sealingDependencies(failing))(never)).rejects.toThrow('the process ended')
    expect(await readChain(database())).toEqual(before)
    expect(await createSealRound(sealingDependencies(database()))(never)).toBe(1)
    expect(await seal()).toBe(0)
    expect((await sealedIds()).at(-1)).toBe(id)
    expect(await intact()).toBeNull()
  })

  it('never forks under concurrent sealing', async () => {
    const rounds = [
      createSealRound(sealingDependencies(database())),
      createSealRound(sealingDependencies(database())),
    ]
    for (let turn = 0; turn < 5; turn += 1) {
      await insertDecisions(database(), 300)
      await Promise.all(rounds.map((round) => round(never)))
    }
    await Promise.all(rounds.map((round) => round(never)))
    const { count } = await database()
      .kysely.selectFrom('decision')
      .select(({ fn }) => fn.countAll<bigint>().as('count'))
      .executeTakeFirstOrThrow()
    expect(BigInt((await readChain(database())).length)).toBe(count)
    expect(await intact()).toBeNull()
  })

  it('skips sequence numbers of another server, from which decisions were restored', async () => {
    await insertDecisions(database(), 1, { written_by: '999999999999' })
    const restarted = createSealRound(sealingDependencies(database()))
    expect(await restarted(never)).toBe(1)
    await spender.decide()
    expect(await restarted(never)).toBe(1)
    expect(await intact()).toBeNull()
  })

  it('seals the newest first after a start, and then what an earlier process has left', async ({ skip }) => {
    skip(database().engine === 'pglite', 'it has written too little for old to differ from new')
    await seal()
    await insertDecisions(database(), 2_300, { written_by: '5' })
    const id = await spender.decide()
    expect(await createSealRound(sealingDependencies(database()))(never)).toBe(2_301)
    expect((await sealedIds()).at(-2_301)).toBe(id)
    expect(await intact()).toBeNull()
  })

  it('stops between batches on abort', async () => {
    await insertDecisions(database(), 10)
    expect(await createSealRound(sealingDependencies(database()))(AbortSignal.abort())).toBe(0)
    expect(await seal()).toBe(10)
  })

  it('seals a decision that was committed after later ones', async ({ skip }) => {
    skip(database().engine === 'pglite', 'it has one session, so nothing can be committed late')
    const early = newId('dec', new Date(noon.getTime() - 60_000))
    let commit = () => {}
    const held = new Promise<void>((resolve) => {
      commit = resolve
    })
    let inserted = () => {}
    const isInserted = new Promise<void>((resolve) => {
      inserted = resolve
    })
    const late = database().transaction(async (connection) => {
      await insertDecisions(connection, 1)
      await (await newSpender(database())).decide({ decisionId: early }, { connection })
      inserted()
      await held
    })
    await isInserted
    const now = await spender.decide()
    expect(await seal()).toBe(1)
    expect(await seal()).toBe(0)
    expect((await sealedIds()).at(-1)).toBe(now)
    commit()
    await late
    expect(await seal()).toBe(2)
    expect((await sealedIds()).at(-2)).toBe(early)
    expect(await intact()).toBeNull()
  })
})
