/** Which keys of owners a database accepts, before, during and after a replacement. */
import { beforeEach, expect, it } from 'vitest'
import { finishRotation, readOwnerBook } from '../../../src/rails/wallets/owners/owner-store.ts'
import { claimDeployment, deploymentFaults } from '../../../src/records/decisions/deployment.ts'
import { onBothEngines } from '../../engines.ts'

const noon = new Date('2026-11-29T12:00:00Z')
const a = `0x${'a'.repeat(40)}` as const
const b = `0x${'b'.repeat(40)}` as const
const c = `0x${'c'.repeat(40)}` as const
type Key = typeof a | typeof b | typeof c

onBothEngines('the key of owners of a database', (database) => {
  const claim = (current: Key, previous: Key | null = null) =>
    claimDeployment(database(), { dataKey: null, chainId: 8453, chainOwners: { current, previous } }, noon)
  const finish = (to: Key) => finishRotation(database(), { to, chains: [], at: noon })

  beforeEach(async () => {
    for (const table of ['owner_rotation', 'deployment'] as const)
      await database().kysely.deleteFrom(table).execute()
    await claim(a)
  })

  it('is the first one, and no other without it', async () => {
    await claim(a)
    await expect(claim(b)).rejects.toThrow('CHAIN_OWNER_KEY does not own the wallets of this database')
    await expect(claim(b, c)).rejects.toThrow(`CHAIN_OWNER_KEY_PREVIOUS (${c}) does not own the wallets`)
    // Nothing was begun by what was refused.
    expect(await readOwnerBook(database())).toMatchObject({ first: a, target: a, known: [a] })
  })

  it('knows the next one before it is used', async () => {
    await claim(a, b)
    expect(await readOwnerBook(database())).toMatchObject({ first: a, target: a, known: [a] })
  })

  it('is replaced by one key at a time', async () => {
    await claim(b, a)
    expect(await readOwnerBook(database())).toMatchObject({ first: a, target: b, known: [a, b] })
    // Repeated, and by gateways of the first step.
    await claim(b, a)
    await claim(a, b)
    await expect(claim(a)).rejects.toThrow(`CHAIN_OWNER_KEY (${a}) is being replaced by ${b}`)
    await expect(claim(a, c)).rejects.toThrow(`CHAIN_OWNER_KEY (${a}) is being replaced by ${b}`)
    await expect(claim(b)).rejects.toThrow(`CHAIN_OWNER_KEY_PREVIOUS (${a}) is needed`)
    await expect(claim(b, c)).rejects.toThrow(`CHAIN_OWNER_KEY_PREVIOUS (${c}) does not own`)
    await expect(claim(c, a)).rejects.toThrow(`is already being replaced, by ${b}`)
    await expect(claim(c, b)).rejects.toThrow(`is already being replaced, by ${b}`)
  })

  it('has one winner of two replacements that begin at once', async () => {
    const both = await Promise.allSettled([claim(b, a), claim(c, a)])
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const rows = await database().kysely.selectFrom('owner_rotation').selectAll().execute()
    expect(rows).toHaveLength(1)
  })

  it('never is one that was replaced, whatever a gateway is started with', async () => {
    await claim(b, a)
    expect(await finish(b)).toBe(true)
    expect(await finish(b)).toBe(false)
    await claim(b)
    await claim(b, a)
    for (const previous of [null, b, c] as const)
      await expect(claim(a, previous)).rejects.toThrow(`CHAIN_OWNER_KEY (${a}) was replaced by ${b}`)
    // The addresses are still computed from the first.
    await claim(c, b)
    expect(await readOwnerBook(database())).toMatchObject({ first: a, target: c, known: [b, a, c] })
  })

  it('tells a fault without beginning anything', async () => {
    const deployment = { dataKey: null, chainId: 8453, chainOwners: { current: b, previous: a } }
    expect(await deploymentFaults(database(), deployment)).toEqual([])
    expect(await database().kysely.selectFrom('owner_rotation').selectAll().execute()).toEqual([])
  })
})
