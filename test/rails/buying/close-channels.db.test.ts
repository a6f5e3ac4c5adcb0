/** Which channels are closed without being asked: those that are unused, those of keys that are over, and those of debtors. */
import { expect, it } from 'vitest'
import { createSimulatedChain } from '../../../src/chain/simulated/simulated.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { insertKey } from '../../../src/people/identity/store.ts'
import { hashChannel } from '../../../src/providers/payment-channels.ts'
import type { PublicFetch } from '../../../src/providers/public-fetch.ts'
import { purseKey } from '../../../src/rails/buying/authorization.ts'
import { buildConfig } from '../../../src/rails/buying/channels/channel.ts'
import { findChannel, openChannel } from '../../../src/rails/buying/channels/channel-store.ts'
import { closeChannels } from '../../../src/rails/buying/channels/close-channel.ts'
import { bringDeposit } from '../../../src/rails/buying/channels/deposit.ts'
import { openPurse } from '../../../src/rails/buying/store.ts'
import { onBothEngines } from '../../engines.ts'
import { buildKeyPrincipal, newPerson, noon, servicesOn } from '../../kernel/scene.ts'

const IDLE_MS = 600_000
const DEPOSIT = 5_000n
const WITHDRAW_DELAY = 900
const running = new AbortController().signal
const gone: PublicFetch = () =>
  Promise.reject(
    Object.assign(new Error('gone'), { name: 'PublicFetchError', problem: 'unreachable', sent: false }),
  )

onBothEngines('channels without a request to close them', (database) => {
  let count = 0
  const open = async () => {
    count += 1
    let now = noon.getTime()
    const clock = () => new Date(now)
    const services = await servicesOn(database())
    const chain = await createSimulatedChain({ clock, log: silentLog, identity: `close ${count}` })
    const { dataKey } = services.settings
    const parts = {
      ...{ database: database(), chain, clock, log: silentLog, fetchPublic: gone },
      settings: {
        ...{ mode: 'sandbox' as const, dataKey, answerRoomBytes: 1_000_000 },
        channels: { maxWithdrawDelay: 86_400, depositMax: 1_000_000n, idleMs: IDLE_MS },
      },
    }
    const { account } = await newPerson(database())
    const { key } = buildKeyPrincipal(account)
    await insertKey(database(), account.id, { ...key, secretHash: null })
    const id = `chn_${String(count).padStart(26, database().engine === 'postgres' ? '0' : '1')}`
    const { address } = purseKey(dataKey, id)
    await openPurse(
      { database: database(), dataKey },
      { id, accountId: account.id, address, home: address, chunk: 0n, at: noon },
    )
    const token = chain.tokens.USDC
    const terms = {
      payTo: `0x${'12'.repeat(20)}`,
      token: `0x${token.slice(2).toLowerCase()}`,
      receiverAuthorizer: `0x${'34'.repeat(20)}`,
      withdrawDelay: WITHDRAW_DELAY,
    } as const
    const config = buildConfig(dataKey, { id, ...terms })
    await openChannel(database(), {
      ...{ id, accountId: account.id, keyId: key.id, origin: 'https://a.example.com', asset: 'USDC' },
      ...{ chain: chain.name, network: `eip155:${chain.id}`, at: noon, hash: hashChannel(config, chain.id) },
      ...terms,
    })
    await chain.mint([{ token: 'USDC', to: address, units: DEPOSIT }])
    expect(await bringDeposit(parts, { id, config, asset: 'USDC' })).toBe(DEPOSIT)
    /** Runs a round of the job so much later. @returns the channel's status then. */
    const after = async (ms: number) => {
      now += ms
      await closeChannels(parts, running)
      return (await findChannel(database(), id))?.status
    }
    const setKey = (set: { status?: 'paused' | 'revoked'; expires_at?: Date }) =>
      database().kysely.updateTable('access_key').set(set).where('id', '=', key.id).execute()
    return { account, key, chain, address, after, setKey }
  }

  it('are closed after their idle time, and end without a seller that is gone', async () => {
    const { chain, address, after } = await open()
    expect(await after(IDLE_MS)).toBe('open')
    expect(await after(1)).toBe('closing')
    expect(await after(61_000)).toBe('exiting')
    expect(await chain.readBalance('USDC', address)).toBe(0n)
    expect(await after(WITHDRAW_DELAY * 1_000 - 10_000)).toBe('exiting')
    await after(11_000)
    expect(await after(3_000)).toBe('closed')
    expect(await chain.readBalance('USDC', address)).toBe(DEPOSIT)
  })

  it('are closed with a revoked key, and with one that has expired', async () => {
    const [revoked, expired] = [await open(), await open()]
    expect([await revoked.after(0), await expired.after(0)]).toEqual(['open', 'open'])
    await revoked.setKey({ status: 'revoked' })
    await expired.setKey({ expires_at: new Date(noon.getTime() + 5_000) })
    expect(await revoked.after(1_000)).toBe('closing')
    expect(await expired.after(4_999)).toBe('open')
    expect(await expired.after(1)).toBe('closing')
  })

  it('stay open for a paused key, which may be resumed, until they are idle', async () => {
    const { after, setKey } = await open()
    await setKey({ status: 'paused' })
    expect(await after(60_000)).toBe('open')
    expect(await after(IDLE_MS)).toBe('closing')
  })
})
