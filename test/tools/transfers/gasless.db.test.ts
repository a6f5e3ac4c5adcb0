import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import type { Principal } from '../../../src/core/base/principal.ts'
import type { Context, Services } from '../../../src/kernel/context.ts'
import { type Address, type Chain, type Hex, tokenAddress } from '../../../src/providers/chain/port.ts'
import { findWallet } from '../../../src/rails/wallets/store.ts'
import { releaseUnwrittenTransfers } from '../../../src/rails/wallets/transfers/release-unwritten.ts'
import { settleRelays } from '../../../src/server/jobs/settle-relays.ts'
import gasless from '../../../tools/transfers/gasless.ts'
import transfer from '../../../tools/wallets/transfer.ts'
import get from '../../../tools/wallets/transfers/get.ts'
import list from '../../../tools/wallets/transfers/list.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import { walletScene } from '../wallets/scene.ts'
import { signAuthorization, signPermit } from './signed-payments.ts'

const seconds = BigInt(noon.getTime() / 1000)
const expectRejection = (reason: string) => ({ code: 'authorization_rejected', members: { reason } })
const newKey = () => privateKeyToAccount(generatePrivateKey())

onBothEngines('a gasless transfer', (database) => {
  let services: Services
  let scene: ReturnType<typeof walletScene>
  let agent: Principal
  let payer: PrivateKeyAccount
  let to: Address
  beforeAll(async () => {
    services = await servicesOn(database())
    scene = walletScene(services)
    agent = (await scene.addAgent(await scene.newOwner())).principal
    payer = newKey()
    to = newKey().address
    await services.chain.mint([{ token: 'USDC', to: payer.address, units: 1_000_000_000n }])
  })
  const relay = (input: object, changes: Partial<Context> = {}, as = agent) =>
    scene.call(gasless, as, { token: 'USDC', ...input }, changes)
  const authorize = (changes: Parameters<typeof signAuthorization>[2] = {}) =>
    signAuthorization(services.chain, payer, { to, value: 5_000_000n, ...changes })
  const permit = (changes: Parameters<typeof signPermit>[2] = {}) =>
    signPermit(services.chain, payer, { value: 3_000_000n, ...changes })
  const readReceived = (address = to) => services.chain.readBalance('USDC', address)
  const readUsed = async (as: Principal) => {
    const keyId = as.kind === 'key' ? as.key.id : ''
    const row = await database()
      .kysely.selectFrom('budget_usage')
      .select('used_micros')
      .where('key_id', '=', keyId)
      .executeTakeFirst()
    return row?.used_micros ?? 0n
  }
  describe('by EIP-3009', () => {
    it('is submitted to the chain, counts under the policy, holds nothing, and is repeated identically', async () => {
      const [before, used] = [await readReceived(), await readUsed(agent)]
      const authorization = await authorize()
      const call = () => relay({ authorization }, { idempotencyKey: authorization.nonce })
      const first = await call()
      expect(first).toMatchObject({
        status: 'confirmed',
        token: 'USDC',
        amount: '5',
        from: payer.address,
        to,
        gasSponsored: true,
        screening: { result: 'clear' },
        transactionHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      })
      expect(await call()).toEqual(first)
      expect(await readReceived()).toBe(before + 5_000_000n)
      expect(await readUsed(agent)).toBe(used + 5_000_000n)
      const facts = await database()
        .kysely.selectFrom('decision')
        .select('facts')
        .where('id', '=', String(first.decisionId))
        .executeTakeFirst()
      expect(JSON.stringify(facts)).not.toContain(authorization.signature)
      await expect(relay({ authorization })).rejects.toMatchObject(expectRejection('nonce_used'))
    })

    it('is listed among the transfers of its account, in their order and by their filters', async () => {
      const as = (await scene.addAgent(await scene.newOwner())).principal
      const ids: unknown[] = []
      const later = (minutes: number) => new Date(noon.getTime() + minutes * 60_000)
      const at = (minutes: number) => ({ now: later(minutes), clock: () => later(minutes) })
      const pay = { destination: to, amount: '1', signature: 'x' }
      ids.push((await scene.call(transfer, as, pay, at(1))).transferId)
      ids.push((await relay({ authorization: await authorize() }, at(2), as)).transferId)
      ids.push((await scene.call(transfer, as, pay, at(3))).transferId)
      const { transfers } = await scene.call(list, as, {})
      const listed = z
        .array(z.looseObject({ transferId: z.string(), authorization: z.string() }))
        .parse(transfers)
      expect(listed.map(({ transferId }) => transferId)).toEqual(ids.reverse())
      expect(await scene.call(get, as, { id: listed[1]?.transferId ?? '' })).toEqual(listed[1])
      expect(listed[1]?.authorization).toBe('payer')
      const { nextCursor: cursor } = await scene.call(list, as, { limit: '1' })
      expect((await scene.call(list, as, { limit: '1', cursor })).transfers).toEqual([listed[1]])
      const bounds = { from: later(2).toISOString(), to: later(3).toISOString() }
      expect((await scene.call(list, as, bounds)).transfers).toEqual([listed[1]])
    })

    it.each([
      ['expired', async () => authorize({ validBefore: seconds })],
      ['not_yet_valid', async () => authorize({ validAfter: seconds })],
      ['signature', async () => ({ ...(await authorize()), value: '6000000' })],
      ['signature', async () => ({ ...(await authorize()), to: newKey().address })],
      ['signature', async () => ({ ...(await authorize()), from: newKey().address })],
      ['domain', async () => authorize({ domain: { chainId: 8453 } })],
      [
        'domain',
        async () =>
          authorize({ domain: { name: 'EURC', verifyingContract: tokenAddress(services.chain, 'EURC') } }),
      ],
      ['balance', async () => authorize({ value: 10_000_000_000n })],
    ])('is rejected for its %s before any gas is spent', async (reason, make) => {
      const owner = await scene.newOwner()
      const [block, used] = [await services.chain.blockNumber(), await readUsed(agent)]
      for (const as of [agent, owner])
        await expect(relay({ authorization: await make() }, {}, as)).rejects.toMatchObject(
          expectRejection(reason),
        )
      expect([await services.chain.blockNumber(), await readUsed(agent)]).toEqual([block, used])
    })

    it('is submitted once under concurrent calls', async () => {
      const before = await readReceived()
      const authorization = await authorize()
      const owner = await scene.newOwner()
      const calls = [agent, agent, owner].map((as) => relay({ authorization }, {}, as))
      const ends = await Promise.allSettled(calls)
      expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      expect(await readReceived()).toBe(before + 5_000_000n)
    })

    it('credits the gateway wallet that it pays', async () => {
      const owner = await scene.newOwner()
      const wallet = (await findWallet(database(), owner.account.id)) ?? '0x'
      const before = await scene.readBooks(owner.account.id)
      await relay({ authorization: await authorize({ to: wallet }) })
      expect(await scene.readBooks(owner.account.id)).toEqual({
        available: before.available + 5_000_000n,
        held: 0n,
      })
      expect(await trialBalance(database())).toMatchObject({ balanced: true, drifts: [] })
    })

    it('is finished by the job when the chain’s answer was lost, and never paid twice', async () => {
      const owner = await scene.newOwner()
      const wallet = (await findWallet(database(), owner.account.id)) ?? '0x'
      const before = await scene.readBooks(owner.account.id)
      const authorization = await authorize({ to: wallet })
      const lossy: Chain = {
        ...services.chain,
        signer: {
          ...services.chain.signer,
          writeContract: async (call) => {
            await services.chain.signer.writeContract(call)
            throw new Error('the connection was lost after the broadcast')
          },
        },
      }
      const repeat = (changes: Partial<Context> = {}) =>
        relay({ authorization }, { idempotencyKey: authorization.nonce, ...changes })
      await expect(repeat({ chain: lossy })).rejects.toMatchObject({ code: 'settlement_pending' })
      await expect(repeat()).rejects.toMatchObject({ code: 'idempotency_in_progress' })
      expect(await scene.readBooks(owner.account.id)).toEqual(before)
      await settleAfter(20)
      expect(await repeat()).toMatchObject({ status: 'confirmed' })
      expect(await scene.readBooks(owner.account.id)).toEqual({
        available: before.available + 5_000_000n,
        held: 0n,
      })
    })

    it('credits nothing when its payer canceled it meanwhile', async () => {
      const owner = await scene.newOwner()
      const wallet = (await findWallet(database(), owner.account.id)) ?? '0x'
      const before = await scene.readBooks(owner.account.id)
      const authorization = await authorize({ to: wallet })
      const dead = async (): Promise<Hex> => Promise.reject(new Error('there is no connection'))
      const chain: Chain = {
        ...services.chain,
        signer: { ...services.chain.signer, writeContract: dead },
        authorizationState: async () => Promise.reject(new Error('there is no connection')),
      }
      const repeat = () => relay({ authorization }, { idempotencyKey: authorization.nonce, chain })
      await expect(repeat()).rejects.toMatchObject({ code: 'settlement_pending' })
      const clock = () => new Date(noon.getTime() + 20_000)
      const canceled: Chain = { ...chain, authorizationState: async () => ({ status: 'canceled' }) }
      await settleRelays({ ...services, chain: canceled, clock }, new AbortController().signal)
      await expect(repeat()).rejects.toMatchObject(expectRejection('nonce_used'))
      expect(await scene.readBooks(owner.account.id)).toEqual(before)
    })

    it('is sent by the job when the chain never received it, and abandoned after its expiry', async () => {
      const [one, other] = [await authorize(), await authorize()]
      const dead = async (): Promise<Hex> => Promise.reject(new Error('there is no connection'))
      const chain: Chain = { ...services.chain, signer: { ...services.chain.signer, writeContract: dead } }
      const used = await readUsed(agent)
      const pending = { code: 'settlement_pending' }
      for (const authorization of [one, other])
        await expect(
          relay({ authorization }, { idempotencyKey: authorization.nonce, chain }),
        ).rejects.toMatchObject(pending)
      const before = await readReceived()
      await database()
        .kysely.updateTable('relay')
        .set({ created_at: new Date(0) })
        .where('nonce', '=', other.nonce)
        .execute()
      await settleAfter(20)
      await settleAfter(40)
      expect(await readReceived()).toBe(before + 5_000_000n)
      const repeat = ({ nonce, ...rest }: typeof one) =>
        relay({ authorization: { nonce, ...rest } }, { idempotencyKey: nonce })
      expect(await repeat(one)).toMatchObject({ status: 'confirmed' })
      await expect(repeat(other)).rejects.toMatchObject({
        code: 'provider_unavailable',
        members: { isFinal: true },
      })
      expect(await readUsed(agent)).toBe(used + 5_000_000n)
      expect(await relay({ authorization: other })).toMatchObject({ status: 'confirmed' })
    })
  })

  describe('by EIP-2612', () => {
    it('transfers the sponsor’s allowance, and is repeated identically', async () => {
      const before = await readReceived()
      const signed = await permit()
      const call = () => relay({ permit: signed, to }, { idempotencyKey: signed.signature })
      const first = await call()
      expect(first).toMatchObject({ status: 'confirmed', amount: '3', from: payer.address, to })
      expect(await call()).toEqual(first)
      expect(await readReceived()).toBe(before + 3_000_000n)
      await expect(relay({ permit: signed, to })).rejects.toMatchObject(expectRejection('nonce_used'))
    })

    it('accepts v, r and s in place of the signature', async () => {
      const { signature, ...rest } = await permit()
      const parts = {
        r: signature.slice(0, 66),
        s: `0x${signature.slice(66, 130)}`,
        v: Number(`0x${signature.slice(130)}`),
      }
      expect(await relay({ permit: { ...rest, ...parts }, to })).toMatchObject({ status: 'confirmed' })
      await expect(relay({ permit: { ...rest, ...parts, signature }, to })).rejects.toMatchObject({
        code: 'invalid_request',
      })
    })

    it.each([
      ['expired', async () => permit({ deadline: seconds - 1n })],
      ['signature', async () => ({ ...(await permit()), value: '4000000' })],
      ['signature', async () => permit({ spender: newKey().address })],
      ['domain', async () => permit({ domain: { chainId: 1 } })],
      ['balance', async () => permit({ value: 10_000_000_000n })],
    ])('is rejected for its %s before any gas is spent', async (reason, make) => {
      const block = await services.chain.blockNumber()
      await expect(relay({ permit: await make(), to })).rejects.toMatchObject(expectRejection(reason))
      expect(await services.chain.blockNumber()).toBe(block)
    })

    it('is resumed between its two transactions', async () => {
      const before = await readReceived()
      const signed = await permit()
      const { signer } = services.chain
      let sent = 0
      const chain: Chain = {
        ...services.chain,
        signer: {
          ...signer,
          writeContract: async (call) => {
            sent += 1
            if (sent > 1) throw new Error('there is no connection')
            return signer.writeContract(call)
          },
        },
      }
      const call = (changes: Partial<Context> = {}) =>
        relay({ permit: signed, to }, { idempotencyKey: signed.signature, ...changes })
      await expect(call({ chain })).rejects.toMatchObject({ code: 'settlement_pending' })
      expect(await readReceived()).toBe(before)
      const another = await permit()
      await expect(relay({ permit: another, to })).rejects.toMatchObject(expectRejection('nonce_used'))
      await settleAfter(20)
      await settleAfter(40)
      expect(await call()).toMatchObject({ status: 'confirmed' })
      expect(await readReceived()).toBe(before + 3_000_000n)
    })
  })

  it('obeys the policy, and the AML lists', async () => {
    const owner = await scene.newOwner()
    const { principal } = await scene.addAgent(owner, { categories: { allow: ['transfer'] } })
    await expect(relay({ authorization: await authorize() }, {}, principal)).rejects.toMatchObject({
      code: 'policy_denied',
      members: { violations: [{ rule: 'category' }] },
    })
    const block = await services.chain.blockNumber()
    for (const [ending, result] of [
      ['9999', 'blocked'],
      ['8888', 'review'],
    ] as const)
      await expect(
        relay({ authorization: await authorize({ to: `0x${'1'.repeat(36)}${ending}` }) }),
      ).rejects.toMatchObject({ code: 'aml_blocked', members: { screening: { result } } })
    expect(await services.chain.blockNumber()).toBe(block)
  })

  it.each([
    {},
    { authorization: {}, permit: {} },
    { permit: { owner: `0x${'1'.repeat(40)}`, value: '1', deadline: 1, signature: `0x${'0'.repeat(130)}` } },
  ])('rejects the request %j', async (input) => {
    await expect(relay(input)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('rejects invalid amounts and tokens', async () => {
    const authorization = await authorize()
    for (const value of ['0', '-1', '1.5', '1e6', 1.5, '1000000000000000001'])
      await expect(relay({ authorization: { ...authorization, value } })).rejects.toMatchObject({
        code: 'invalid_request',
      })
    await expect(relay({ authorization, token: 'USDT' })).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(relay({ authorization, chain: 'base' })).rejects.toMatchObject({
      code: 'chain_not_supported',
    })
  })

  it('releases a reservation that never got its row', async () => {
    const used = await readUsed(agent)
    const broken = new Error('the process ended')
    const chain = new Proxy(services.chain, {
      get: (target, name) => {
        if (name === 'name' && new Error().stack?.includes('relayPayment')) throw broken
        return Reflect.get(target, name)
      },
    })
    await expect(relay({ authorization: await authorize() }, { chain })).rejects.toBe(broken)
    expect(await readUsed(agent)).toBe(used + 5_000_000n)
    await releaseUnwrittenTransfers(services, new Date(noon.getTime() + 60_000))
    expect(await readUsed(agent)).toBe(used)
  })

  async function settleAfter(later: number): Promise<void> {
    const clock = () => new Date(noon.getTime() + later * 1000)
    await settleRelays({ ...services, clock }, new AbortController().signal)
  }

  it('finishes every relay', async () => {
    const rows = await database().kysely.selectFrom('relay').select('state').execute()
    expect(new Set(rows.map(({ state }) => state))).toEqual(new Set(['confirmed', 'failed']))
  })
})
