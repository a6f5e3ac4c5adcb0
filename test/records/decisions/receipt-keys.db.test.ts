/** Receipts whose key is replaced while several gateways run. */
import { generateKeyPairSync, sign } from 'node:crypto'
import { beforeAll, expect, it } from 'vitest'
import { publishReceiptKey, readKeySet } from '../../../src/records/decisions/receipt-keys.ts'
import { createSealRound } from '../../../src/records/decisions/seal-decisions.ts'
import { openReceiptKey, type SigningKey } from '../../../src/records/decisions/signing-key.ts'
import { sealedPages } from '../../../src/records/decisions/store.ts'
import { verifyChain } from '../../../src/records/decisions/verify-chain.ts'
import { noon } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import { never, newSpender, sealingDependencies, settings } from './scene.ts'

const { dataKey } = settings

/** A key outside of the process. */
async function newKey(): Promise<SigningKey> {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const x = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')
  const key = {
    publicKey: x,
    place: 'a token',
    sign: async (data: Uint8Array) => sign(null, data, privateKey),
  }
  return openReceiptKey({ openDocumentKey: async () => key }, { receiptKey: 'pkcs11:…', dataKey })
}

onBothEngines('keys of receipts', (database) => {
  let spender: Awaited<ReturnType<typeof newSpender>>
  let second: SigningKey
  let third: SigningKey
  beforeAll(async () => {
    spender = await newSpender(database())
    second = await newKey()
    third = await newKey()
  })
  /** A gateway that started with this key. */
  const startGateway = async (receiptKey: SigningKey, minutes: number) => {
    await publishReceiptKey(database(), { dataKey, receiptKey }, new Date(noon.getTime() + minutes * 60_000))
    const parts = sealingDependencies(database())
    const round = createSealRound({ ...parts, settings: { ...settings, receiptKey } })
    return async () => {
      await spender.decide()
      return round(never)
    }
  }
  const listKids = async () => (await readKeySet(database(), dataKey)).keys.map(({ kid }) => kid)
  const verify = async () => {
    const keySet = await readKeySet(database(), dataKey)
    return (await verifyChain(sealedPages(database()), { keySet })).fault
  }
  const listAlarms = () => database().kysely.selectFrom('alarm').selectAll().execute()

  it('are those of the derived key until one is published', async () => {
    expect(await listKids()).toEqual([settings.receiptKey.keyId])
    // A gateway from before such records.
    await spender.decide()
    await createSealRound(sealingDependencies(database()))(never)
    expect(await verify()).toBeNull()
  })

  it('keep the derived key when the first other one is published', async () => {
    const seal = await startGateway(second, 1)
    expect(new Set(await listKids())).toEqual(new Set([second.keyId, settings.receiptKey.keyId]))
    expect(await seal()).toBe(1)
    expect(await verify()).toBeNull()
  })

  it('let gateways with an old and a new key seal in turns, without a false alarm', async () => {
    const old = await startGateway(second, 2)
    expect(await old()).toBe(1)
    const renewed = await startGateway(third, 3)
    for (const seal of [renewed, old, renewed, old]) expect(await seal()).toBe(1)
    expect((await listKids())[0]).toBe(third.keyId)
    expect(await listKids()).toHaveLength(3)
    expect(await verify()).toBeNull()
    expect(await listAlarms()).toEqual([])
  })

  it('count for nothing when somebody wrote them into the database without the data key', async () => {
    const forged = await newKey()
    await publishReceiptKey(
      database(),
      { dataKey: Buffer.from('another data key of many letters'), receiptKey: forged },
      noon,
    )
    expect(await listKids()).not.toContain(forged.keyId)
    expect(await listKids()).toHaveLength(3)
  })
})
