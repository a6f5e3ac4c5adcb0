import { beforeAll, beforeEach, expect, it } from 'vitest'
import type { Services } from '../../../src/kernel/context.ts'
import { eraseTravelRules } from '../../../src/people/compliance/store.ts'
import decide from '../../../tools/admin/travel-rules/decide.ts'
import list from '../../../tools/admin/travel-rules/list.ts'
import sandboxAdmin from '../../../tools/sandbox/admin.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import { newSignedIn, type SignedIn } from '../../people/identity/signed-in.ts'
import { newPayer, outsideAddress, type Payer, reviewFor } from '../compliance/scene.ts'

const reason = 'A shop of the same name, in another country.'

onBothEngines('a name on the sanctions list in Travel Rule data', (database) => {
  let services: Services
  let admin: SignedIn
  let payer: Payer
  let id: string
  const said = { beneficiary: { name: 'Roman Semenov', vasp: 'Some Exchange' } }
  const listRecords = async () => (await admin.call(list, {})).body.records
  const decideOn = async (decision: string, caller: SignedIn = admin) =>
    (await caller.call(decide, { id, decision, reason })).body

  beforeAll(async () => {
    services = await servicesOn(database())
  })
  beforeEach(async () => {
    admin = await newSignedIn(services)
    await admin.call(sandboxAdmin, {})
    payer = await newPayer(services)
    const recorded = await payer.disclose(said)
    expect(recorded).toMatchObject({ status: 'declined' })
    id = String(recorded.id)
  })

  it('waits for an administrator; once approved, the destination can be paid, and its names stay cleared', async () => {
    expect(await listRecords()).toContainEqual({
      id,
      accountId: payer.accountId,
      destination: outsideAddress,
      names: ['Ada Lovelace', 'Roman Semenov', 'Bursar', 'Some Exchange'],
      hits: ['SEMENOV, Roman'],
    })
    await expect(payer.send({ amount: '5' })).rejects.toMatchObject(reviewFor('named_party'))
    expect(await decideOn('approve')).toEqual({ id, decision: 'approve' })
    expect(JSON.stringify(await listRecords())).not.toContain(id)
    await payer.send({ amount: '5' })
    await expect(payer.send({ amount: '1500' })).rejects.toMatchObject(reviewFor('travel_rule'))
    expect(await payer.disclose({ beneficiary: { name: 'Roman Semenov' } })).toMatchObject({
      status: 'required',
    })
    await payer.send({ amount: '1500' })
    // Another name, and the same name for another destination, are reviewed again.
    for (const members of [
      { beneficiary: { name: 'Roman Semënov' } },
      { ...said, destination: `0x${'c2'.repeat(20)}` },
    ])
      expect(await payer.disclose(members)).toMatchObject({ status: 'declined' })
  })

  it('stays blocked when rejected or erased, and is decided once', async () => {
    await eraseTravelRules(database(), { accountId: payer.accountId, at: noon })
    expect(await listRecords()).toContainEqual(expect.objectContaining({ id, names: null, hits: [] }))
    await decideOn('reject')
    await expect(decideOn('approve')).rejects.toMatchObject({ code: 'conflict' })
    await payer.disclose({ amount: '5' })
    await expect(payer.send({ amount: '5' })).rejects.toMatchObject(reviewFor('named_party'))
  })

  it('cannot be decided by its sender, nor by a non-administrator', async () => {
    await expect(decideOn('approve', payer)).rejects.toMatchObject({ code: 'insufficient_scope' })
    await database()
      .kysely.updateTable('account')
      .set({ guest: false, role: 'admin' })
      .where('id', '=', payer.accountId)
      .execute()
    await expect(decideOn('approve', payer)).rejects.toMatchObject({ code: 'conflict' })
    id = 'tr_00000000000000000000000000'
    await expect(decideOn('approve')).rejects.toMatchObject({ code: 'not_found' })
  })
})
