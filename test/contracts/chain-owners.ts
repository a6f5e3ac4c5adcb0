/** The chain port's contract for wallets that the gateway does not own. */
import { createHash } from 'node:crypto'
import canonicalize from 'canonicalize'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { expect, it } from 'vitest'
import { operationOutcome } from '../../src/books/evidence/operation-outcome.ts'
import type {
  Address,
  Authorization,
  AuthorizedOperation,
  Chain,
  ChainOperation,
  Hex,
  Wallet,
  WalletOwner,
} from '../../src/providers/chain/port.ts'
import { newAuthenticator } from '../people/identity/authenticator.ts'
import { newAddress, transferOf, walletOf } from './chain.ts'
import { parseAttestation } from './passkey-key.ts'

const ORIGIN = 'http://localhost:8787'
const WAIT_MS = 10_000

export interface TestPasskey {
  readonly owner: Extract<WalletOwner, { kind: 'passkey' }>
  /** Signs an intent with its operation hash. @param alter changes the assertion before it is submitted. */
  sign(operationHash: Hex, alter?: (message: string) => string): Extract<Authorization, { kind: 'passkey' }>
}

async function newPasskey(): Promise<TestPasskey> {
  const device = newAuthenticator(ORIGIN)
  const made = device.create({
    challenge: 'Y2hhbGxlbmdlLW9mLXJlZ2lzdHJhdGlvbg',
    rp: { id: 'localhost', name: 'Bursar' },
    user: { id: 'YWNjdA', name: 'Ada', displayName: 'Ada' },
    pubKeyCredParams: [{ alg: -7, type: 'public-key' }],
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  })
  const owner = { kind: 'passkey', ...(await parseAttestation(made)) } as const
  return {
    owner,
    sign(operationHash, alter = (message) => message) {
      const message = canonicalize({ amount: '1', intentId: 'int_test', operationHash, token: 'USDC' })
      if (message === undefined) throw new Error('no JSON')
      const challenge = createHash('sha256').update(message).digest('base64url')
      const { response } = device.get({ challenge, rpId: 'localhost', userVerification: 'required' })
      const { authenticatorData, clientDataJSON, signature } = response
      return {
        kind: 'passkey',
        message: alter(message),
        authenticatorData: String(authenticatorData),
        clientDataJSON,
        signature: String(signature),
      }
    },
  }
}

/** Declares these tests in a suite. @param checksOwners true if the chain itself verifies signatures. */
export function testOwners(chainOf: () => Chain, checksOwners: boolean): void {
  const fund = async (wallet: Wallet, units: bigint) => {
    const to = await chainOf().walletAddress(wallet)
    await chainOf().mint([{ token: 'USDC', to, units }])
    return to
  }
  const walletWith = (owner: WalletOwner, origin = owner): Wallet => {
    const { accountId } = transferOf('', newAddress(), 1n).wallet
    return { accountId: `${accountId}acct_${newAddress().slice(2, 14)}`, origin, owner }
  }
  const paymentOf = (wallet: Wallet, to: Address, units: bigint): ChainOperation => {
    const { id, call, validUntil } = transferOf(wallet.accountId, to, units)
    return { wallet, id, call, validUntil }
  }
  const send = async (operation: AuthorizedOperation) => {
    const submission = await chainOf().submit(operation)
    return submission.status === 'refused' ? submission : operationOutcome(chainOf(), operation, WAIT_MS)
  }
  const rejected = { status: 'refused', cause: 'authorization' }
  const confirmed = { status: 'confirmed' }
  const gateway = { kind: 'gateway' } as const

  it('pays from a wallet that a passkey owns, with its assertion', async () => {
    const passkey = await newPasskey()
    const wallet = walletWith(passkey.owner)
    await fund(wallet, 10n)
    const to = newAddress()
    const payment = paymentOf(wallet, to, 7n)
    const authorization = passkey.sign(chainOf().operationOf(payment).hash)
    expect(await send({ ...payment, authorization })).toMatchObject(confirmed)
    expect(await chainOf().readBalance('USDC', to)).toBe(7n)
    const names = (await chainOf().modules(wallet)).map(({ name, status }) => `${name} ${status}`)
    expect(names.sort()).toEqual(['AgentAllowance active', 'Safe4337Module active'])
  })

  it.runIf(checksOwners)(
    'refuses to move a passkey’s money by the gateway’s key, or by a signature of another message',
    async () => {
      const [passkey, thief] = [await newPasskey(), await newPasskey()]
      const wallet = walletWith(passkey.owner)
      await fund(wallet, 100n)
      const [payment, larger] = [paymentOf(wallet, newAddress(), 7n), paymentOf(wallet, newAddress(), 70n)]
      const { hash } = chainOf().operationOf(payment)
      const attempts: AuthorizedOperation[] = [
        { ...payment, authorization: gateway },
        { ...payment, authorization: thief.sign(hash) },
        { ...larger, authorization: passkey.sign(hash) },
        // The larger payment's hash inside the text that was signed for the smaller one.
        {
          ...larger,
          authorization: passkey.sign(hash, (message) =>
            message.replace(hash, chainOf().operationOf(larger).hash),
          ),
        },
        // A text that contains the member only inside a string.
        {
          ...larger,
          authorization: passkey.sign(hash, (message) =>
            message.replace('int_test', `"operationHash":"${chainOf().operationOf(larger).hash}`),
          ),
        },
      ]
      const before = await chainOf().readBalance('USDC', await chainOf().walletAddress(wallet))
      for (const attempt of attempts) expect(await send(attempt)).toMatchObject(rejected)
      expect(await chainOf().readBalance('USDC', await chainOf().walletAddress(wallet))).toBe(before)
    },
  )

  it('hands its own wallet over to an external key, and then cannot move its money alone', async () => {
    const account = privateKeyToAccount(generatePrivateKey())
    const mine = walletOf(walletWith(gateway).accountId)
    await fund(mine, 100n)
    expect(await send({ ...paymentOf(mine, newAddress(), 1n), authorization: gateway })).toMatchObject(
      confirmed,
    )
    const theirs: Wallet = { ...mine, owner: { kind: 'eoa', address: account.address } }
    const payment = paymentOf(theirs, newAddress(), 2n)
    const signature = await account.sign({ hash: chainOf().operationOf(payment).hash })
    expect(await send({ ...payment, authorization: { kind: 'eoa', signature } })).toMatchObject(confirmed)
    expect(await send({ ...paymentOf(theirs, newAddress(), 3n), authorization: gateway })).toMatchObject(
      rejected,
    )
    if (checksOwners) {
      const larger = paymentOf(theirs, newAddress(), 50n)
      expect(await send({ ...larger, authorization: { kind: 'eoa', signature } })).toMatchObject(rejected)
      expect(await send({ ...paymentOf(mine, newAddress(), 3n), authorization: gateway })).toMatchObject(
        rejected,
      )
    }
    expect(await chainOf().readBalance('USDC', await chainOf().walletAddress(theirs))).toBe(97n)
  })

  it('lets agents spend from an owner’s wallet up to its daily allowance, and no more', async () => {
    const passkey = await newPasskey()
    const wallet = walletWith(passkey.owner)
    await fund(wallet, 5_000_000_000n)
    const byAgent = (agentId: string, units: bigint) =>
      send({ ...paymentOf(wallet, newAddress(), units), authorization: { kind: 'allowance', agentId } })
    expect(await byAgent('key_1', 600_000_000n)).toMatchObject(confirmed)
    // Agents without an allowance of their own share one.
    expect(await byAgent('key_2', 600_000_000n)).toEqual({
      status: 'refused',
      cause: 'authorization',
      reason: 'on-chain allowance of 1000 USD a day: 600 is spent, 600 more was requested',
    })
    expect(await byAgent('key_2', 400_000_000n)).toMatchObject(confirmed)

    const call = { kind: 'allowance', agentId: 'key_2', dailyMicros: 1_500_000_000n } as const
    const grant = { ...paymentOf(wallet, newAddress(), 1n), call }
    const authorization = passkey.sign(chainOf().operationOf(grant).hash)
    expect(await send({ ...grant, authorization })).toMatchObject(confirmed)
    expect(await byAgent('key_2', 1_500_000_000n)).toMatchObject(confirmed)
    expect(await byAgent('key_2', 1n)).toMatchObject(rejected)
    expect(await chainOf().readAllowance(wallet, 'key_2')).toEqual({
      dailyMicros: 1_500_000_000n,
      spentMicros: 1_500_000_000n,
      onceMicros: 0n,
      isOwn: true,
    })
    expect(await chainOf().readAllowance(wallet, 'key_1')).toMatchObject({ isOwn: false })
    expect(await chainOf().readAllowance(walletOf(wallet.accountId), 'key_1')).toBeNull()
  })

  it('lets cards spend from a separate allowance, which agents do not use up', async () => {
    const passkey = await newPasskey()
    const wallet = walletWith(passkey.owner)
    await fund(wallet, 5_000_000_000n)
    const by = (agentId: string, units: bigint) =>
      send({ ...paymentOf(wallet, newAddress(), units), authorization: { kind: 'allowance', agentId } })
    expect(await by('key_1', 1_000_000_000n)).toMatchObject(confirmed)
    expect(await by('cards', 600_000_000n)).toMatchObject(confirmed)
    expect(await by('key_2', 1n)).toMatchObject(rejected)
    expect(await by('cards', 400_000_001n)).toMatchObject(rejected)
    expect(await by('cards', 400_000_000n)).toMatchObject(confirmed)
    expect(await chainOf().readAllowance(wallet, 'cards')).toEqual({
      dailyMicros: 1_000_000_000n,
      spentMicros: 1_000_000_000n,
      onceMicros: 0n,
      isOwn: true,
    })
  })

  it.each(['deployed', 'never used'])(
    'hands a %s wallet over with its open card holds as a one-time allowance',
    async (state) => {
      const account = privateKeyToAccount(generatePrivateKey())
      const mine = walletOf(walletWith(gateway).accountId)
      await fund(mine, 5_000_000_000n)
      if (state === 'deployed') await send({ ...paymentOf(mine, newAddress(), 1n), authorization: gateway })
      const theirs: Wallet = {
        ...mine,
        owner: { kind: 'eoa', address: account.address },
        cardCover: 900_000_000n,
      }
      const first = { dailyMicros: 1_000_000_000n, spentMicros: 0n, onceMicros: 900_000_000n, isOwn: true }
      // The allowance that the hand-over will set is reported before it is on chain.
      expect(await chainOf().readAllowance(theirs, 'cards')).toEqual(first)
      const byCards = (units: bigint) =>
        send({
          ...paymentOf(theirs, newAddress(), units),
          authorization: { kind: 'allowance', agentId: 'cards' },
        })
      expect(await byCards(700_000_000n)).toMatchObject(confirmed)
      expect(await chainOf().readAllowance(theirs, 'cards')).toEqual({ ...first, onceMicros: 200_000_000n })
      expect(await byCards(1_200_000_001n)).toMatchObject(rejected)
      expect(await byCards(300_000_000n)).toMatchObject(confirmed)
      expect(await chainOf().readAllowance(theirs, 'cards')).toEqual({
        ...first,
        spentMicros: 100_000_000n,
        onceMicros: 0n,
      })

      // An allowance signed by the owner replaces the earlier ones.
      const call = { kind: 'allowance', agentId: 'cards', dailyMicros: 99_000_000n } as const
      const grant = { ...paymentOf(theirs, newAddress(), 1n), call }
      const signature = await account.sign({ hash: chainOf().operationOf(grant).hash })
      expect(await send({ ...grant, authorization: { kind: 'eoa', signature } })).toMatchObject(confirmed)
      expect(await byCards(1n)).toMatchObject(rejected)
    },
  )

  it('does not execute an expired operation', async () => {
    const wallet = walletOf(walletWith(gateway).accountId)
    await fund(wallet, 10n)
    const late = { ...paymentOf(wallet, newAddress(), 1n), validUntil: new Date(Date.now() - 5_000) }
    expect(await send({ ...late, authorization: gateway })).toMatchObject(rejected)
  })

  it('bundles operations of many wallets, and excludes one that is refused', async () => {
    const passkey = await newPasskey()
    const wallets = Array.from({ length: 12 }, () => walletWith(gateway))
    await Promise.all(wallets.map((wallet) => fund(wallet, 1n)))
    const foreign = walletWith(passkey.owner)
    await fund(foreign, 1n)
    const payments = [...wallets, foreign].map(
      (wallet): AuthorizedOperation => ({
        ...paymentOf(wallet, newAddress(), 1n),
        authorization: gateway,
      }),
    )
    const outcomes = await Promise.all(payments.map(send))
    expect(outcomes.filter(({ status }) => status === 'confirmed')).toHaveLength(12)
    expect(outcomes.at(-1)).toMatchObject(rejected)
  })
}
