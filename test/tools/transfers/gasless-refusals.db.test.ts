/** Payments that look valid but that the token rejects: reported at once, and never left open. */
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { beforeAll, expect, it } from 'vitest'
import type { Principal } from '../../../src/core/base/principal.ts'
import { Failure } from '../../../src/core/failures/failure.ts'
import type { Context, Services } from '../../../src/kernel/context.ts'
import { type Chain, type EvmSigner, type Hex, refusedCall } from '../../../src/providers/chain/port.ts'
import { reconcileWallet } from '../../../src/rails/wallets/reconcile/reconcile.ts'
import { signedCall } from '../../../src/rails/wallets/relays/payment-call.ts'
import { findWallet, lowerCase } from '../../../src/rails/wallets/store.ts'
import { releaseUnwrittenTransfers } from '../../../src/rails/wallets/transfers/release-unwritten.ts'
import { settleRelays } from '../../../src/server/jobs/settle-relays.ts'
import { createWatchChain } from '../../../src/server/jobs/watch-chain.ts'
import gasless from '../../../tools/transfers/gasless.ts'
import get from '../../../tools/wallets/transfers/get.ts'
import { onBothEngines } from '../../engines.ts'
import { noon, servicesOn } from '../../kernel/scene.ts'
import { walletScene } from '../wallets/scene.ts'
import { mirror, signAuthorization, signPermit } from './signed-payments.ts'

const expectRejection = (reason: string) => ({ code: 'authorization_rejected', members: { reason } })
const newKey = () => privateKeyToAccount(generatePrivateKey())
const seconds = (count: number) => () => new Date(noon.getTime() + count * 1000)

onBothEngines('payments that a token rejects', (database) => {
  let services: Services
  let scene: ReturnType<typeof walletScene>
  let agent: Principal
  let payer: PrivateKeyAccount
  beforeAll(async () => {
    services = await servicesOn(database())
    scene = walletScene(services)
    agent = (await scene.addAgent(await scene.newOwner())).principal
    payer = newKey()
    await services.chain.mint([{ token: 'USDC', to: payer.address, units: 1_000_000_000n }])
  })
  const relay = (input: object, changes: Partial<Context> = {}, as = agent) =>
    scene.call(gasless, as, { token: 'USDC', ...input }, changes)
  const authorize = (changes: Parameters<typeof signAuthorization>[2] = {}) =>
    signAuthorization(services.chain, payer, { to: newKey().address, value: 5_000_000n, ...changes })
  const withSigner = (changes: Partial<EvmSigner>, others: Partial<Chain> = {}): Chain => ({
    ...services.chain,
    ...others,
    signer: { ...services.chain.signer, ...changes },
  })
  const relays = () =>
    database().kysely.selectFrom('relay').select(['id', 'state', 'decision_id']).orderBy('id').execute()
  const readReserved = () =>
    database().kysely.selectFrom('reservation').selectAll().where('status', '=', 'reserved').execute()

  /** Submits an authorization to the chain without the gateway. */
  const carryAlone = ({
    from,
    to,
    value,
    validAfter,
    validBefore,
    ...signed
  }: Awaited<ReturnType<typeof authorize>>) =>
    services.chain.signer.writeContract(
      signedCall(services.chain, {
        ...signed,
        kind: 'authorization',
        token: 'USDC',
        units: BigInt(value),
        payer: from,
        destination: to,
        validAfter: BigInt(validAfter),
        validBefore: BigInt(validBefore),
      }),
    )

  it.each([
    ['a mirrored signature', mirror],
    ['another v', (signature: Hex): Hex => `0x${signature.slice(2, 130)}1d`],
    ['a byte more', (signature: Hex): Hex => `0x${signature.slice(2, 130)}00${signature.slice(130)}`],
  ])('rejects %s before anything is reserved, and accepts the genuine one afterwards', async (_, change) => {
    const before = await relays()
    const authorization = await authorize()
    const permit = await signPermit(services.chain, payer, { value: 1_000_000n })
    const forged = { ...authorization, signature: change(authorization.signature) }
    const isSigned = async () => true
    for (const chain of [services.chain, withSigner({ verifyTypedData: isSigned })])
      await expect(relay({ authorization: forged }, { chain })).rejects.toMatchObject(
        expectRejection('signature'),
      )
    const forgedPermit = { ...permit, signature: change(permit.signature) }
    await expect(relay({ permit: forgedPermit, to: newKey().address })).rejects.toMatchObject(
      expectRejection('signature'),
    )
    expect(await relays()).toEqual(before)
    expect(await relay({ authorization })).toMatchObject({ status: 'confirmed' })
  })

  it.each(['validAfter', 'validBefore'])('rejects a %s that no token can read', async (name) => {
    const authorization = { ...(await authorize()), [name]: (2n ** 256n).toString() }
    await expect(relay({ authorization })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  it('simulates on the token itself before anything is reserved', async () => {
    const before = await relays()
    for (const [words, reason] of [
      ['FiatTokenV2: invalid signature', 'signature'],
      ['FiatTokenV2: authorization is not yet valid or is expired', 'not_yet_valid'],
      ['ERC20: transfer amount exceeds balance', 'balance'],
      ['Blacklistable: account is blacklisted', 'refused'],
    ] as const) {
      const readContract: EvmSigner['readContract'] = async (call) => {
        if (call.functionName === 'transferWithAuthorization') throw refusedCall(words)
        return services.chain.signer.readContract(call)
      }
      await expect(
        relay({ authorization: await authorize() }, { chain: withSigner({ readContract }) }),
      ).rejects.toMatchObject({ ...expectRejection(reason), message: expect.stringContaining(words) })
    }
    expect(await relays()).toEqual(before)
  })

  it('fails a relay at once that the chain refuses to broadcast, and repeats that answer', async () => {
    const authorization = await authorize()
    const writeContract = async (): Promise<Hex> => {
      throw refusedCall('Pausable: paused')
    }
    const chain = withSigner({ writeContract })
    const call = () => relay({ authorization }, { idempotencyKey: authorization.nonce, chain })
    for (const attempt of [call, call])
      await expect(attempt()).rejects.toMatchObject(expectRejection('refused'))
    expect((await relays()).filter(({ state }) => state === 'failed')).toHaveLength(1)
    expect(await readReserved()).toEqual([])
    expect(await relay({ authorization })).toMatchObject({ status: 'confirmed' })
  })

  it('fails a relay at once whose transaction was reverted', async () => {
    const authorization = await authorize()
    const chain = withSigner({
      writeContract: async () => `0x${'a'.repeat(64)}`,
      waitForTransactionReceipt: async () => ({ status: 'reverted' }),
    })
    const call = () => relay({ authorization }, { idempotencyKey: authorization.nonce, chain })
    for (const attempt of [call, call])
      await expect(attempt()).rejects.toMatchObject(expectRejection('refused'))
    expect(await readReserved()).toEqual([])
  })

  it.each([
    ['refuses', async () => Promise.reject(refusedCall('FiatTokenV2: authorization is used or canceled'))],
    ['is silent', async () => Promise.reject(new Error('there is no connection'))],
    ['executes in vain', async (): Promise<Hex> => `0x${'b'.repeat(64)}`],
  ])('reports at once that the payer canceled it, when the chain %s', async (_, writeContract) => {
    const authorization = await authorize()
    const chain = withSigner(
      { writeContract, waitForTransactionReceipt: async () => ({ status: 'reverted' }) },
      { authorizationState: async () => ({ status: 'canceled' }) },
    )
    const call = () => relay({ authorization }, { idempotencyKey: authorization.nonce, chain })
    for (const attempt of [call, call])
      await expect(attempt()).rejects.toMatchObject(expectRejection('nonce_used'))
    expect(await readReserved()).toEqual([])
  })

  it('fails a relay whose nonce the payer used in a transaction of their own', async () => {
    const authorization = await authorize()
    const carried = await carryAlone(authorization)
    expect(await services.chain.transaction(carried)).toMatchObject({ succeeded: true })
    const chain = withSigner({
      // The earlier simulation does not decide: the nonce may be used in between.
      readContract: async (call) =>
        call.functionName === 'transferWithAuthorization' || call.functionName === 'authorizationState'
          ? false
          : services.chain.signer.readContract(call),
    })
    const call = () => relay({ authorization }, { idempotencyKey: authorization.nonce, chain })
    for (const attempt of [call, call])
      await expect(attempt()).rejects.toMatchObject(expectRejection('nonce_used'))
    expect(await readReserved()).toEqual([])
  })

  it('fails a permit whose money has left after the permit was submitted', async () => {
    const permit = await signPermit(services.chain, payer, { value: 1_000_000n })
    let isGone = false
    const chain = withSigner(
      {
        writeContract: async (call) => {
          if (call.functionName === 'permit') return services.chain.signer.writeContract(call)
          isGone = true
          throw refusedCall('ERC20: transfer amount exceeds balance')
        },
      },
      { readBalance: async (token, address) => (isGone ? 0n : services.chain.readBalance(token, address)) },
    )
    const call = () =>
      relay({ permit, to: newKey().address }, { idempotencyKey: permit.signature.slice(0, 200), chain })
    await expect(call()).rejects.toMatchObject(expectRejection('balance'))
    expect(await readReserved()).toEqual([])
  })

  it('returns the same error again to the loser of a race', async () => {
    const authorization = await authorize()
    const keys = ['one', 'two', 'three', 'four'].map((name) => `${name} ${authorization.nonce}`)
    const call = (idempotencyKey: string) => relay({ authorization }, { idempotencyKey })
    const first = await Promise.allSettled(keys.map(call))
    const again = await Promise.allSettled(keys.map(call))
    for (const ends of [first, again]) {
      expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      for (const end of ends)
        if (end.status === 'rejected') expect(end.reason).toMatchObject(expectRejection('nonce_used'))
    }
    expect(await readReserved()).toEqual([])
  })

  it('reports a decision without a relay as never sent', async () => {
    const authorization = await authorize()
    const idempotencyKey = authorization.nonce
    // The process dies before it writes the relay's row.
    const dying: Services['database'] = {
      ...services.database,
      call: async (statement, parameters) =>
        statement.name === 'wallets_insert_relay'
          ? Promise.reject(new Error('the process ended'))
          : services.database.call(statement, parameters),
    }
    const call = (changes: Partial<Context> = {}) => relay({ authorization }, { idempotencyKey, ...changes })
    await expect(call({ database: dying })).rejects.toThrow('the process ended')
    await expect(call()).rejects.toMatchObject({ code: 'idempotency_in_progress' })
    await releaseUnwrittenTransfers({ ...services, clock: seconds(600) }, seconds(600)())
    await expect(call()).rejects.toMatchObject({ code: 'provider_unavailable', members: { isFinal: true } })
    expect(await relay({ authorization })).toMatchObject({ status: 'confirmed' })
  })

  it('tells a call whose decision was cut off what cut it off, and the next that it runs', async () => {
    const authorization = await authorize()
    const idempotencyKey = authorization.nonce
    // Decided, and the database went away before it could say so.
    const cut: Services['reserve'] = async (...request) => {
      await services.reserve(...request)
      throw new Failure('provider_unavailable', 'The database cannot be reached.', { retryAfter: 1 })
    }
    const call = (changes: Partial<Context> = {}) => relay({ authorization }, { idempotencyKey, ...changes })
    await expect(call({ reserve: cut })).rejects.toMatchObject({ code: 'provider_unavailable' })
    await expect(call()).rejects.toMatchObject({ code: 'idempotency_in_progress' })
    await releaseUnwrittenTransfers({ ...services, clock: seconds(600) }, seconds(600)())
    expect(await readReserved()).toEqual([])
  })

  it('says that a call runs to its repeat, whatever keeps that from being decided', async () => {
    const authorization = await authorize()
    const idempotencyKey = authorization.nonce
    const call = (changes: Partial<Context> = {}) => relay({ authorization }, { idempotencyKey, ...changes })
    let repeated: Promise<unknown> = Promise.resolve()
    const silent = {
      ...services.railControls,
      read: async () => {
        throw new Failure('controls_unavailable', 'Rail controls cannot be read. Nothing was done.')
      },
    }
    // While the first call has its decision, and has not sent its payment.
    const slow: Services['reserve'] = async (...request) => {
      const decided = await services.reserve(...request)
      repeated = call({ railControls: silent }).catch((error: unknown) => error)
      await repeated
      return decided
    }
    expect(await call({ reserve: slow })).toMatchObject({ status: 'confirmed' })
    expect(await repeated).toMatchObject({ code: 'idempotency_in_progress' })
    expect(await call({ railControls: silent })).toMatchObject({ status: 'confirmed' })
  })

  it('shows a relay’s status to its own account alone', async () => {
    const sent = await relay({ authorization: await authorize() })
    const id = sent.transferId
    expect(await scene.call(get, agent, { id })).toMatchObject({
      transferId: id,
      state: 'confirmed',
      amount: '5',
      authorization: 'payer',
      decisionId: sent.decisionId,
      transactionHash: sent.transactionHash,
    })
    const eve = await scene.newOwner()
    await expect(scene.call(get, eve, { id })).rejects.toMatchObject({ code: 'not_found' })
  })

  it('delays no other credit while a relay to an external address is open', async () => {
    const owner = await scene.newOwner()
    const accountId = owner.account.id
    const address = lowerCase((await findWallet(database(), accountId)) ?? '0x')
    const before = await scene.readBooks(accountId)
    const authorization = await authorize({ to: address })
    const dead = withSigner({
      writeContract: async () => Promise.reject(new Error('there is no connection')),
    })
    await expect(relay({ authorization }, { chain: dead })).rejects.toMatchObject({
      code: 'settlement_pending',
    })
    const watch = createWatchChain(services)
    const running = new AbortController().signal
    await watch(running)
    await carryAlone(await authorize({ to: address, value: 9n }))
    await watch(running)
    expect(await scene.readBooks(accountId)).toEqual({ ...before, available: before.available + 9n })
    const reconcile = async (after: number) => {
      await watch(running)
      await reconcileWallet({ ...services, clock: seconds(after) }, { accountId, address })
    }
    for (const after of [1, 10, 31, 40]) await reconcile(after)
    expect(await scene.readBooks(accountId)).toEqual({ ...before, available: before.available + 9n })
    // Once its transaction may have paid, credits wait until it is final: then it is booked once.
    const lossy = withSigner({
      writeContract: async (call) => {
        await services.chain.signer.writeContract(call)
        throw new Error('the connection was lost after the broadcast')
      },
    })
    const settle = (chain: Chain, after: number) =>
      settleRelays({ ...services, chain, clock: seconds(after) }, new AbortController().signal)
    await settle(lossy, 50)
    for (const after of [55, 65]) await reconcile(after)
    expect(await scene.readBooks(accountId)).toEqual({ ...before, available: before.available + 9n })
    await settle(services.chain, 80)
    for (const after of [90, 100]) await reconcile(after)
    expect(await scene.readBooks(accountId)).toEqual({ ...before, available: before.available + 5_000_009n })
  })
})
