import { beforeAll, expect, it } from 'vitest'
import type { Principal } from '../../../src/core/base/principal.ts'
import type { Context, Services } from '../../../src/kernel/context.ts'
import { transferPage } from '../../../src/rails/wallets/transfers/transfer-history.ts'
import transfer from '../../../tools/wallets/transfer.ts'
import get from '../../../tools/wallets/transfers/get.ts'
import list from '../../../tools/wallets/transfers/list.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import { payee, walletScene } from './scene.ts'

const at = (hour: number) => ({ now: hours(hour), clock: () => hours(hour) })
const hours = (count: number) => new Date(noon.getTime() + count * 3_600_000)

onBothEngines('the history of transfers', (database) => {
  let services: Services
  let scene: ReturnType<typeof walletScene>
  let owner: Principal
  beforeAll(async () => {
    services = await servicesOn(database())
    scene = walletScene(services)
    owner = await scene.newOwner()
    const other = `0x${'2'.repeat(40)}`
    await pay({ amount: '1' }, { ...at(0) })
    await pay({ amount: '2', token: 'EURC' }, { ...at(1) })
    await pay({ amount: '3', destination: other }, { ...at(2) })
    const chain = { ...services.chain, awaitExecution: async () => ({ status: 'pending' as const }) }
    await pay({ amount: '4' }, { ...at(3), chain })
    const refusing = {
      ...services.chain,
      submit: async () => ({ status: 'refused', reason: 'paused', cause: 'transfer' }) as const,
    }
    await pay({ amount: '5' }, { ...at(4), chain: refusing }).catch(() => undefined)
  })
  const pay = (input: object, changes: Partial<Context>) =>
    scene.call(transfer, owner, { destination: payee, signature: 'x', ...input }, changes)
  const listTransfers = async (input: object = {}, as = owner) =>
    transferPage.parse(await scene.call(list, as, input))
  const amounts = async (input: object) => (await listTransfers(input)).transfers.map(({ amount }) => amount)

  it('shows the status of each, newest first, in pages', async () => {
    const { transfers } = await listTransfers()
    expect(transfers.map(({ amount, state }) => `${amount} ${state}`)).toEqual([
      '5 failed',
      '4 settlement_pending',
      '3 confirmed',
      '2 confirmed',
      '1 confirmed',
    ])
    expect(transfers[0]).toMatchObject({ failure: 'paused', transactionHash: null, authorization: 'sandbox' })
    const first = await listTransfers({ limit: '2' })
    const rest = await listTransfers({ limit: '3', cursor: first.nextCursor })
    expect([...first.transfers, ...rest.transfers]).toEqual(transfers)
    expect(rest.nextCursor).toBeNull()
  })

  it.each([
    [{ state: 'confirmed' }, ['3', '2', '1']],
    [{ asset: 'EURC' }, ['2']],
    [{ destination: `0x${'2'.repeat(40)}` }, ['3']],
    [{ from: hours(1).toISOString(), to: hours(3).toISOString() }, ['3', '2']],
    [{ state: 'failed', asset: 'EURC' }, []],
  ])('filters by %j', async (filter, expected) => {
    expect(await amounts(filter)).toEqual(expected)
  })

  it('reads one, but none of another account', async () => {
    const [{ transferId: id } = { transferId: '' }] = (await listTransfers()).transfers
    expect(await scene.call(get, owner, { id })).toMatchObject({ transferId: id, state: 'failed' })
    const eve = await scene.newOwner()
    expect(await listTransfers({}, eve)).toEqual({ transfers: [], nextCursor: null })
    await expect(scene.call(get, eve, { id })).rejects.toMatchObject({ code: 'not_found' })
    const { principal } = await scene.addAgent(owner)
    expect(await scene.call(get, principal, { id })).toMatchObject({ transferId: id })
  })

  it.each([{ token: 'USDC' }, { asset: 'EUR' }, { from: 'yesterday' }, { destination: '0x1' }])(
    'rejects %j',
    async (filter) => {
      await expect(scene.call(list, owner, filter)).rejects.toMatchObject({ code: 'invalid_request' })
    },
  )
})
