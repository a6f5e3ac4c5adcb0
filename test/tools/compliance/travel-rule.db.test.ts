import { IVMS101_2023Schema } from 'ivms101'
import { getAddress } from 'viem'
import { beforeAll, beforeEach, expect, it } from 'vitest'
import { newId } from '../../../src/core/base/ids.ts'
import { unseal } from '../../../src/core/base/seal.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { eraseTravelRules } from '../../../src/people/compliance/store.ts'
import travelRule from '../../../tools/compliance/travel-rule.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, buildKeyPrincipal, noon, servicesOn } from '../../kernel/scene.ts'
import { newSignedIn } from '../../people/identity/signed-in.ts'
import { sendingDependencies, usdcBalance } from '../../rails/wallets/scene.ts'
import { newPayer, outsideAddress, type Payer, reviewFor } from './scene.ts'

onBothEngines('POST /api/compliance/travel-rule', (database) => {
  let services: Services
  let payer: Payer
  const readRecord = (id: unknown) =>
    database()
      .kysely.selectFrom('travel_rule')
      .selectAll()
      .where('id', '=', String(id))
      .executeTakeFirstOrThrow()
  const liveIn = (country: string) =>
    database().kysely.updateTable('account').set({ country }).where('id', '=', payer.accountId).execute()
  const refusal = (code: string) => ({ code })
  beforeAll(async () => {
    services = await servicesOn(database())
  })
  beforeEach(async () => {
    payer = await newPayer(services)
  })

  it('is required for transfers of 1,000 or more, and for no smaller one', async () => {
    await payer.send({ amount: '999.999999' })
    await expect(payer.send({ amount: '1000' })).rejects.toMatchObject({
      ...reviewFor('travel_rule'),
      members: {
        screening: { result: 'review', lists: ['travel_rule'] },
        hint: expect.stringContaining(
          `POST /api/compliance/travel-rule {"amount":"1000","token":"USDC","destination":"${outsideAddress}","chain":"base-sepolia"`,
        ),
      },
    })
    const recorded = await payer.disclose({ amount: '1000' })
    expect(recorded).toMatchObject({
      id: expect.stringMatching(/^tr_[0-9a-z]{26}$/),
      status: 'required',
      reason: '1000 USD is not below the threshold of 1000 USD; the data is on record for the transfer.',
      threshold: { amount: '1000', currency: 'USD' },
    })
    const { body } = await payer.send({ amount: '1000' })
    expect(body).toMatchObject({ status: 'confirmed', screening: { result: 'clear' } })
    expect((await readRecord(recorded.id)).decision_id).toBe(body.decisionId)
    await expect(payer.send({ amount: '1000' })).rejects.toMatchObject(reviewFor('travel_rule'))
  })

  it('needs a verified holder as the originator, whatever name is submitted', async () => {
    const unverified = await newPayer(services, false)
    for (const originator of [undefined, { name: 'Guest' }, { name: 'Ada Lovelace' }])
      await expect(unverified.disclose({ amount: '1000', originator })).rejects.toMatchObject({
        ...refusal('kyc_required'),
        members: { hint: expect.stringContaining('POST /api/compliance/kyc') },
      })
    expect(await unverified.disclose({ amount: '999' })).toMatchObject({ status: 'not_required' })
  })

  it('applies to exactly the transfer that it names', async () => {
    await payer.disclose({ amount: '1500' })
    for (const other of [
      { amount: '1501' },
      { amount: '1500', token: 'USDT' as const },
      { amount: '1500', destination: `0x${'c2'.repeat(20)}` },
    ])
      await expect(payer.send(other)).rejects.toMatchObject(reviewFor('travel_rule'))
    const otherPayer = await newPayer(services)
    await expect(otherPayer.send({ amount: '1500' })).rejects.toMatchObject(reviewFor('travel_rule'))
    await payer.send({ amount: '1500', destination: getAddress(outsideAddress) })
  })

  it('depends on the account’s country', async () => {
    await liveIn('US')
    await payer.send({ amount: '2000' })
    expect(await payer.disclose({ amount: '2999' })).toMatchObject({
      status: 'not_required',
      reason: '2999 USD is below the threshold of 3000 USD.',
    })
    await expect(payer.send({ amount: '3000' })).rejects.toMatchObject(reviewFor('travel_rule'))
    await liveIn('DE')
    await expect(payer.send({ amount: '0.01' })).rejects.toMatchObject(reviewFor('travel_rule'))
    expect(await payer.disclose({ amount: '0.01', token: 'EURC' })).toMatchObject({
      status: 'required',
      threshold: { amount: '0', currency: 'EUR' },
    })
    await payer.send({ amount: '0.01', token: 'EURC' })
  })

  it('is not required for transfers to a wallet of the gateway', async () => {
    const { address: destination } = await newPayer(services)
    expect(await payer.disclose({ amount: '5000', destination })).toMatchObject({ status: 'not_required' })
    await payer.send({ amount: '5000', destination })
    await payer.send({ amount: '6000', destination })
  })

  it('returns a payload valid under the standard, for persons, organisations and institutions', async () => {
    for (const members of [
      { beneficiary: { name: 'Grace Hopper', country: 'XK' } },
      { beneficiary: { legalName: 'Example GmbH', country: 'DE', vasp: 'Some Exchange' } },
      {
        beneficiary: { name: 'Иван', vasp: { name: 'VASP B', lei: '5493001KJTIIGC8Y1R12' } },
        originator: { legalName: 'Ours Ltd', country: 'GB' },
      },
    ]) {
      const { payload } = await payer.disclose(members)
      expect(IVMS101_2023Schema.safeParse(payload).error).toBeUndefined()
    }
    const { payload } = await payer.disclose({
      beneficiary: { legalName: 'Example GmbH', country: 'DE', vasp: 'Some Exchange', segment: 'b2b' },
      risk: 'low',
    })
    expect(payload).toEqual({
      originator: {
        originatorPerson: [
          {
            naturalPerson: {
              name: {
                nameIdentifier: [
                  { primaryIdentifier: 'Ada Lovelace', naturalPersonNameIdentifierType: 'LEGL' },
                ],
              },
              customerIdentification: payer.accountId,
              countryOfResidence: 'BR',
            },
            accountNumber: [payer.address],
          },
        ],
      },
      beneficiary: {
        beneficiaryPerson: [
          {
            legalPerson: {
              name: {
                nameIdentifier: [{ legalPersonName: 'Example GmbH', legalPersonNameIdentifierType: 'LEGL' }],
              },
              customerIdentification: outsideAddress,
              countryOfRegistration: 'DE',
            },
            accountNumber: [outsideAddress],
          },
        ],
      },
      originatingVASP: expect.objectContaining({
        legalPerson: expect.objectContaining({ customerIdentification: 'Bursar' }),
      }),
      beneficiaryVASP: expect.objectContaining({
        legalPerson: expect.objectContaining({ customerIdentification: 'Some Exchange' }),
      }),
      payloadMetadata: { payloadVersion: '101.2023' },
    })
  })

  it('can be attached to a completed transfer once, and only to one’s own', async () => {
    const { body } = await payer.send({ amount: '5' })
    const about = { transferId: body.transferId, amount: undefined, destination: undefined }
    const otherPayer = await newPayer(services)
    await expect(otherPayer.disclose(about)).rejects.toMatchObject(refusal('not_found'))
    await expect(payer.disclose({ ...about, transferId: newId('tx', noon) })).rejects.toMatchObject(
      refusal('not_found'),
    )
    const recorded = await payer.disclose(about)
    expect(recorded.status).toBe('not_required')
    expect(await readRecord(recorded.id)).toMatchObject({
      decision_id: body.decisionId,
      units: 5_000_000n,
      destination: outsideAddress,
    })
    await expect(payer.disclose(about)).rejects.toMatchObject(refusal('conflict'))
  })

  it.each([
    ['beneficiary', { beneficiary: { legalName: 'The LAZARUS Group' } }],
    ['beneficiary’s institution', { beneficiary: { name: 'Grace Hopper', vasp: 'Lazarus Group' } }],
    ['originator', { originator: { name: 'Roman Semenov' } }],
  ])(
    'is declined when the name of the %s is on a sanctions list, which also blocks the destination',
    async (party, members) => {
      // A verified holder is the originator, whatever name is submitted.
      if (party === 'originator') payer = await newPayer(services, false)
      const recorded = await payer.disclose({ amount: '5', ...members })
      expect(recorded).toMatchObject({
        status: 'declined',
        reason: expect.stringContaining(`The name of the ${party} may be on a sanctions list.`),
      })
      const held = {
        ...reviewFor('named_party'),
        members: { hint: expect.stringContaining(String(recorded.id)) },
      }
      await expect(payer.send({ amount: '5' })).rejects.toMatchObject(held)
      await payer.disclose({ amount: '5' })
      await eraseTravelRules(database(), { accountId: payer.accountId, at: noon })
      for (const input of [{ amount: '5' }, { amount: '6', destination: getAddress(outsideAddress) }])
        await expect(payer.send(input)).rejects.toMatchObject(held)
      await payer.send({ amount: '5', destination: `0x${'c2'.repeat(20)}` })
      const otherPayer = await newPayer(services)
      await otherPayer.send({ amount: '5' })
    },
  )

  it('is stored sealed only, even in idempotency records, and can be erased', async () => {
    const how = { idempotencyKey: 'disclose-1' }
    const recorded = await payer.disclose({}, how)
    const again = await payer.disclose({}, how)
    expect(again).toEqual({ ...recorded, payload: null })
    const { sealed } = await readRecord(recorded.id)
    const { dataKey } = services.settings
    const seal = { purpose: 'travel rule', owner: String(recorded.id) }
    expect(JSON.parse(unseal(dataKey, seal, sealed ?? new Uint8Array()))).toEqual(recorded.payload)
    for (const table of ['travel_rule', 'idempotency', 'decision'] as const) {
      const rows = await database().kysely.selectFrom(table).selectAll().execute()
      const text = rows.map((row) => Object.values(row).map(String).join(' ')).join('\n')
      expect(text).not.toContain('Hopper')
    }
    await eraseTravelRules(database(), { accountId: payer.accountId, at: noon })
    expect(await readRecord(recorded.id)).toMatchObject({ sealed: null, erased_at: noon })
    await expect(payer.send({ amount: '1500' })).rejects.toMatchObject(reviewFor('travel_rule'))
  })

  it('is used by one of two concurrent transfers; the other’s hold is released', async () => {
    await payer.disclose({ amount: '1500' })
    const before = await usdcBalance(sendingDependencies(database(), services.chain), payer.accountId)
    const outcomes = await Promise.allSettled(Array.from({ length: 4 }, () => payer.send({ amount: '1500' })))
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') expect(['conflict', 'aml_blocked']).toContain(outcome.reason.code)
    expect(await usdcBalance(sendingDependencies(database(), services.chain), payer.accountId)).toEqual({
      available: before.available - 1_500_000_000n,
      held: 0n,
    })
  })

  it('can be used again after its transfer failed, and stays used for a repeated call', async () => {
    await payer.disclose({ amount: '1500' })
    // The chain balance is zero: it refuses the transfer, and the hold is released.
    const empty = {
      ...services.chain,
      submit: async () => ({ status: 'refused' as const, reason: 'empty', cause: 'transfer' as const }),
    }
    const { chain } = services
    Object.assign(services, { chain: empty })
    await expect(payer.send({ amount: '1500' })).rejects.toMatchObject(refusal('provider_unavailable'))
    Object.assign(services, { chain })
    const how = { idempotencyKey: 'once' }
    const first = await payer.send({ amount: '1500' }, how)
    const again = await payer.send({ amount: '1500' }, how)
    expect([first.replayed, again.replayed]).toEqual([false, true])
    expect(again.body).toEqual(first.body)
  })

  it('lists missing and unexpected members', async () => {
    const wrongs: [Record<string, unknown>, string][] = [
      [{ amount: undefined }, 'amount'],
      [{ destination: undefined }, 'destination'],
      [{ transferId: newId('tx', noon) }, 'amount'],
      [{ amount: '0.0000001' }, 'amount'],
      [{ beneficiary: {} }, 'beneficiary'],
      [{ beneficiary: { name: 'A', legalName: 'B' } }, 'beneficiary'],
      [{ beneficiary: { name: 'A', country: 'Germany' } }, 'beneficiary.country'],
      [{ beneficiary: { name: 'A', vasp: { name: 'B', lei: 'C' } } }, 'beneficiary.vasp.lei'],
      [
        { beneficiary: { name: 'A', vasp: { name: 'B', lei: '5493001KJTIIGC8Y1R21' } } },
        'beneficiary.vasp.lei',
      ],
      [{ beneficiary: { name: '\u200B' } }, 'beneficiary.name'],
      [{ beneficiary: { legalName: '\u3164' } }, 'beneficiary.legalName'],
      [{ beneficiary: { name: 'A' }, originator: { name: '\u2800' } }, 'originator.name'],
      [{ beneficiary: { name: 'A', country: 'ZZ' } }, 'beneficiary.country'],
      [{ beneficiary: { name: 'A\u0007' } }, 'beneficiary.name'],
      [{ beneficiary: { legalName: 'A\u202Etxt.exe' } }, 'beneficiary.legalName'],
      [{ beneficiary: { name: 'A', vasp: { name: 'B\u2066' } } }, 'beneficiary.vasp.name'],
      [{ beneficiary: { name: 'A' }, originator: { name: 'B\nC' } }, 'originator.name'],
    ]
    for (const [members, path] of wrongs)
      await expect(payer.disclose(members)).rejects.toMatchObject({
        code: 'invalid_request',
        members: { issues: expect.arrayContaining([expect.objectContaining({ path })]) },
      })
    await expect(payer.disclose({ chain: 'polygon' })).rejects.toMatchObject(refusal('chain_not_supported'))
    const poor = await newSignedIn(services)
    const input = { amount: '1', destination: outsideAddress, beneficiary: { name: 'A' } }
    await expect(poor.call(travelRule, input)).rejects.toMatchObject(refusal('not_found'))
  })

  it('accepts keys that have the scope', async () => {
    const { account } = buildKeyPrincipal({
      id: payer.accountId,
      role: 'user',
      status: 'active',
      guest: true,
      displayName: 'Guest',
      kycLevel: 'none',
      mfaEnrolled: false,
      createdAt: noon,
    })
    const input = { amount: '1500', destination: outsideAddress, beneficiary: { name: 'A' } }
    await expect(
      run(travelRule, buildCall(services, buildKeyPrincipal(account)), input),
    ).rejects.toMatchObject(refusal('insufficient_scope'))
    const key = buildKeyPrincipal(account, { scopes: ['compliance:write'] })
    await expect(run(travelRule, buildCall(services, key), input)).resolves.toMatchObject({
      body: { status: 'required' },
    })
  })
})
