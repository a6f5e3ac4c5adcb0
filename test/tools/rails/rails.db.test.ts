import { beforeAll, expect, it } from 'vitest'
import type { Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import { railIds } from '../../../src/providers/rail-controls/port.ts'
import { createRemoteRailControls } from '../../../src/providers/rail-controls/remote.ts'
import controlsGet from '../../../tools/rails/controls/get.ts'
import controlsSet from '../../../tools/rails/controls/set.ts'
import list from '../../../tools/rails/list.ts'
import sandboxAdmin from '../../../tools/sandbox/admin.ts'
import { onBothEngines } from '../../engines.ts'
import { buildCall, noon, servicesOn } from '../../kernel/scene.ts'
import { newSignedIn, type SignedIn, signInAgain } from '../../people/identity/signed-in.ts'

onBothEngines('rails', (database) => {
  let services: Services
  let admin: SignedIn
  beforeAll(async () => {
    services = await servicesOn(database())
    admin = await newSignedIn(services)
    await admin.call(sandboxAdmin, {})
  })
  const asStranger = (changes: Partial<Services> = {}) =>
    run(list, buildCall({ ...services, ...changes }, { kind: 'public' }), {})

  it('are listed to anybody, with their operations and state', async () => {
    const { body } = await asStranger()
    expect(body).toMatchObject({ asOf: noon.toISOString() })
    expect(body.rails).toHaveLength(railIds.length)
    expect(body.rails).toContainEqual({
      id: 'x402-fx',
      kind: 'x402',
      directions: ['in'],
      currencies: [],
      tokens: ['USDC'],
      chains: ['base-sepolia'],
      status: 'enabled',
      mode: 'sandbox',
      min: '0.01',
      max: '0.01',
      fees: [],
      settlementTime: 'PT3S',
      reason: null,
    })
  })

  it('are switched by an administrator, individually', async () => {
    await admin.call(controlsSet, { id: 'x402-fx', enabled: false, reason: 'Maintenance.' })
    await expect(admin.call(controlsGet, { id: 'x402-fx' })).resolves.toMatchObject({
      body: { id: 'x402-fx', status: 'disabled', reason: 'Maintenance.' },
    })
    await expect(asStranger()).resolves.toMatchObject({
      body: {
        rails: expect.arrayContaining([
          expect.objectContaining({ id: 'x402-fx', status: 'disabled', reason: 'Maintenance.' }),
          expect.objectContaining({ id: 'wallet-transfer', status: 'enabled', reason: null }),
        ]),
      },
    })
    await admin.call(controlsSet, { id: 'x402-fx', enabled: true })
    await expect(admin.call(controlsGet, { id: 'x402-fx' })).resolves.toMatchObject({
      body: { status: 'enabled', reason: null },
    })
  })

  it('are unknown, without an error, while the control plane is down; switching is refused', async () => {
    const railControls = createRemoteRailControls({ url: 'http://127.0.0.1:1' })
    const { body } = await asStranger({ railControls })
    expect(body.rails).toHaveLength(railIds.length)
    for (const id of railIds)
      expect(body.rails).toContainEqual(
        expect.objectContaining({ id, status: 'unknown', reason: expect.stringContaining('cannot be read') }),
      )
    const inTheDark = await signInAgain({ ...services, railControls }, admin.accountId)
    await expect(inTheDark.call(controlsGet, { id: 'x402-fx' })).resolves.toMatchObject({
      body: { status: 'unknown' },
    })
    await expect(inTheDark.call(controlsSet, { id: 'x402-fx', enabled: true })).rejects.toMatchObject({
      code: 'conflict',
    })
  })
})
