import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import type { Principal } from '../../../src/core/base/principal.ts'
import type { Context, Services } from '../../../src/kernel/context.ts'
import removePasskey from '../../../tools/security/passkeys/remove.ts'
import create from '../../../tools/wallets/signers/create.ts'
import list from '../../../tools/wallets/signers/list.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import { walletScene } from './scene.ts'

const rejected = { code: 'signature_rejected' }
const later = (minutes: number) => new Date(noon.getTime() + minutes * 60_000)
const page = z.object({
  signers: z.array(z.object({ id: z.string(), type: z.string(), address: z.string().optional() })),
  nextCursor: z.string().nullable(),
})

onBothEngines('signers', (database) => {
  let services: Services
  let scene: ReturnType<typeof walletScene>
  beforeAll(async () => {
    services = await servicesOn(database())
    scene = walletScene(services)
  })
  const register = (as: Principal, input: object, changes: Partial<Context> = {}) =>
    scene.call(create, as, input, changes)
  const listSigners = async (as: Principal, input: object = {}) =>
    page.parse(await scene.call(list, as, input))

  it('are listed, each kind, newest first and in pages', async () => {
    const { owner } = await scene.newPasskeyOwner()
    const { address } = await scene.addEoa(owner)
    await scene.addAgent(owner)
    await scene.addPasskey(owner)
    await scene.addDeveloperKey(owner)
    const { signers } = await listSigners(owner)
    expect(signers.map(({ type }) => type).sort()).toEqual(['agent', 'eoa', 'passkey', 'passkey'])
    expect(signers.find(({ type }) => type === 'eoa')?.address).toBe(address)
    const seen = []
    let cursor: string | null = null
    do {
      const { signers: some, nextCursor } = await listSigners(owner, {
        limit: 1,
        ...(cursor === null ? {} : { cursor }),
      })
      seen.push(...some)
      cursor = nextCursor
    } while (cursor !== null)
    expect(seen).toEqual(signers)
  })

  it('are registered by the key’s own signature of this account’s text, before it expires', async () => {
    const [owner, eve] = [await scene.newOwner(), await scene.newOwner()]
    const [key, other] = [
      privateKeyToAccount(generatePrivateKey()),
      privateKeyToAccount(generatePrivateKey()),
    ]
    const { address } = key
    const { typedData, expiresAt } = await register(owner, { address })
    expect(expiresAt).toBe(later(10).toISOString())
    const signature = await key.signTypedData(typedData as never)
    const byOther = await other.signTypedData(typedData as never)
    await expect(register(owner, { address, signature: byOther })).rejects.toMatchObject(rejected)
    await expect(register(owner, { address: other.address, signature })).rejects.toMatchObject(rejected)
    await expect(register(eve, { address, signature })).rejects.toMatchObject(rejected)
    await expect(register(owner, { address, signature }, { now: later(10) })).rejects.toMatchObject(rejected)
    expect((await listSigners(owner)).signers).toEqual([])
    const { signer } = await register(owner, { address, signature }, { now: later(9) })
    expect(signer).toMatchObject({ id: expect.stringMatching(/^sgn_/), type: 'eoa', address })
    await expect(register(owner, { address, signature })).rejects.toMatchObject({ code: 'conflict' })
  })

  it('need a fresh second factor to be registered', async () => {
    const owner = await scene.newOwner()
    const enrolled = { ...owner, account: { ...owner.account, mfaEnrolled: true } }
    const { address } = privateKeyToAccount(generatePrivateKey())
    await expect(register(enrolled, { address })).rejects.toMatchObject({ code: 'step_up_required' })
  })

  it('cannot be removed while they own the wallet on chain', async () => {
    const { owner } = await scene.newPasskeyOwner()
    await scene.addPasskey(owner)
    const [second, first] = (await listSigners(owner)).signers
      .map(({ id }) => id)
      .sort((one, two) => (one < two ? 1 : -1))
    const remove = (id: string | undefined) => scene.call(removePasskey, owner, { id })
    const owning = { code: 'conflict', message: expect.stringContaining('owns the wallet on chain') }
    const ends = [
      await remove(first).catch((error: unknown) => error),
      await remove(second).catch((error: unknown) => error),
    ]
    // Both were created at one moment, so that either may be listed first; the owner stays in any case.
    expect(ends).toContainEqual({ removed: true })
    expect(ends).toContainEqual(expect.objectContaining(owning))
  })
})
