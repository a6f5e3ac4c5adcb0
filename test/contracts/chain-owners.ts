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
import { buildTransfer, buildWallet, newAddress } from './chain.ts'
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
export function testOwners(findChain: () => Chain, checksOwners: boolean): void {
  const fund = async (wallet: Wallet, units: bigint) => {
    const to = await findChain().walletAddress(wallet)
    await findChain().mint([{ token: 'USDC', to, units }])
    return to
  }
  const walletWith = (owner: WalletOwner, origin = owner): Wallet => {
    const { accountId } = buildTransfer('', newAddress(), 1n).wallet
    return { accountId: `${accountId}acct_${newAddress().slice(2, 14)}`, origin, owner }
  }
  const buildPayment = (wallet: Wallet, to: Address, units: bigint): ChainOperation => {
    const { id, call, validUntil } = buildTransfer(wallet.accountId, to, units)
    return { wallet, id, call, validUntil }
  }
  const send = async (operation: AuthorizedOperation) => {
    const submission = await findChain().submit(operation)
    return submission.status === 'refused' ? submission : operationOutcome(findChain(), operation, WAIT_MS)
  }
  const rejected = { status: 'refused', cause: 'authorization' }
  const confirmed = { status: 'confirmed' }
  const gateway = { kind: 'gateway' } as const

  it('pays from a wallet that a passkey owns, with its assertion', async () => {
    const passkey = await newPasskey()
    const wallet = walletWith(passkey.owner)
    await fund(wallet, 10n)
    const to = newAddress()
    const payment = buildPayment(wallet, to, 7n)
    const authorization = passkey.sign(findChain().operationOf(payment).hash)
    expect(await send({ ...payment, authorization })).toMatchObject(confirmed)
    expect(await findChain().readBalance('USDC', to)).toBe(7n)
    const names = (await findChain().modules(wallet)).map(({ name, status }) => `${name} ${status}`)
    expect(names.sort()).toEqual(['AgentAllowance active', 'Safe4337Module active'])
  })

  it.runIf(checksOwners)(
    'refuses to move a passkey’s money by the gateway’s key, or by a signature of another message',
    async () => {
      const [passkey, thief] = [await newPasskey(), await newPasskey()]
      const wallet = walletWith(passkey.owner)
      await fund(wallet, 100n)
      const [payment, larger] = [
        buildPayment(wallet, newAddress(), 7n),
        buildPayment(wallet, newAddress(), 70n),
      ]
      const { hash } = findChain().operationOf(payment)
      const attempts: AuthorizedOperation[] = [
        { ...payment, authorization: gateway },
        { ...payment, authorization: thief.sign(hash) },
        { ...larger, authorization: passkey.sign(hash) },
        // The larger payment's hash inside the text that was signed for the smaller one.
        {
          ...larger,
          authorization: passkey.sign(hash, (message) =>
            message.replace(hash, findChain().operationOf(larger).hash),
          ),
        },
        // A text that contains the member only inside a string.
        {
          ...larger,
          authorization: passkey.sign(hash, (message) =>
            message.replace('int_test', `"operationHash":"${findChain().operationOf(larger).hash}`),
          ),
        },
      ]
      const before = await findChain().readBalance('USDC', await findChain().walletAddress(wallet))
      for (const attempt of attempts) expect(await send(attempt)).toMatchObject(rejected)
      expect(await findChain().readBalance('USDC', await findChain().walletAddress(wallet))).toBe(before)
    },
  )

  it('hands its own wallet over to an external key, and then cannot move its money alone', async () => {
    const account = privateKeyToAccount(generatePrivateKey())
    const mine = buildWallet(walletWith(gateway).accountId)
    await fund(mine, 100n)
    expect(await send({ ...buildPayment(mine, newAddress(), 1n), authorization: gateway })).toMatchObject(
      confirmed,
    )
    const theirs: Wallet = { ...mine, owner: { kind: 'eoa', address: account.address } }
    const payment = buildPayment(theirs, newAddress(), 2n)
    const signature = await account.sign({ hash: findChain().operationOf(payment).hash })
    expect(await send({ ...payment, authorization: { kind: 'eoa', signature } })).toMatchObject(confirmed)
    expect(await send({ ...buildPayment(theirs, newAddress(), 3n), authorization: gateway })).toMatchObject(
      rejected,
    )
    if (checksOwners) {
      const larger = buildPayment(theirs, newAddress(), 50n)
      expect(await send({ ...larger, authorization: { kind: 'eoa', signature } })).toMatchObject(rejected)
      expect(await send({ ...buildPayment(mine, newAddress(), 3n), authorization: gateway })).toMatchObject(
        rejected,
      )
    }
    expect(await findChain().readBalance('USDC', await findChain().walletAddress(theirs))).toBe(97n)
  })

  it('lets agents spend from an owner’s wallet up to its daily allowance, and no more', async () => {
    const passkey = await newPasskey()
    const wallet = walletWith(passkey.owner)
    await fund(wallet, 5_000_000_000n)
    const byAgent = (agentId: string, units: bigint) =>
      send({ ...buildPayment(wallet, newAddress(), units), authorization: { kind: 'allowance', agentId } })
    expect(await byAgent('key_1', 600_000_000n)).toMatchObject(confirmed)
    // Agents without an allowance of their own share one.
    expect(await byAgent('key_2', 600_000_000n)).toEqual({
      status: 'refused',
      cause: 'authorization',
      reason: 'on-chain allowance of 1000 USD a day: 600 is spent, 600 more was requested',
    })
    expect(await byAgent('key_2', 400_000_000n)).toMatchObject(confirmed)

    const call = { kind: 'allowance', agentId: 'key_2', dailyMicros: 1_500_000_000n } as const
    const grant = { ...buildPayment(wallet, newAddress(), 1n), call }
    const authorization = passkey.sign(findChain().operationOf(grant).hash)
    expect(await send({ ...grant, authorization })).toMatchObject(confirmed)
    expect(await byAgent('key_2', 1_500_000_000n)).toMatchObject(confirmed)
    expect(await byAgent('key_2', 1n)).toMatchObject(rejected)
    expect(await findChain().readAllowance(wallet, 'key_2')).toEqual({
      dailyMicros: 1_500_000_000n,
      spentMicros: 1_500_000_000n,
      onceMicros: 0n,
      isOwn: true,
    })
    expect(await findChain().readAllowance(wallet, 'key_1')).toMatchObject({ isOwn: false })
    expect(await findChain().readAllowance(buildWallet(wallet.accountId), 'key_1')).toBeNull()
  })

  it('lets cards spend from a separate allowance, which agents do not use up', async () => {
    const passkey = await newPasskey()
    const wallet = walletWith(passkey.owner)
    await fund(wallet, 5_000_000_000n)
    const by = (agentId: string, units: bigint) =>
      send({ ...buildPayment(wallet, newAddress(), units), authorization: { kind: 'allowance', agentId } })
    expect(await by('key_1', 1_000_000_000n)).toMatchObject(confirmed)
    expect(await by('cards', 600_000_000n)).toMatchObject(confirmed)
    expect(await by('key_2', 1n)).toMatchObject(rejected)
    expect(await by('cards', 400_000_001n)).toMatchObject(rejected)
    expect(await by('cards', 400_000_000n)).toMatchObject(confirmed)
    expect(await findChain().readAllowance(wallet, 'cards')).toEqual({
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
      const mine = buildWallet(walletWith(gateway).accountId)
      await fund(mine, 5_000_000_000n)
      if (state === 'deployed')
        await send({ ...buildPayment(mine, newAddress(), 1n), authorization: gateway })
      const theirs: Wallet = {
        ...mine,
        owner: { kind: 'eoa', address: account.address },
        cardCover: 900_000_000n,
      }
      const first = { dailyMicros: 1_000_000_000n, spentMicros: 0n, onceMicros: 900_000_000n, isOwn: true }
      // The allowance that the hand-over will set is reported before it is on chain.
      expect(await findChain().readAllowance(theirs, 'cards')).toEqual(first)
      const byCards = (units: bigint) =>
        send({
          ...buildPayment(theirs, newAddress(), units),
          authorization: { kind: 'allowance', agentId: 'cards' },
        })
      expect(await byCards(700_000_000n)).toMatchObject(confirmed)
      expect(await findChain().readAllowance(theirs, 'cards')).toEqual({ ...first, onceMicros: 200_000_000n })
      expect(await byCards(1_200_000_001n)).toMatchObject(rejected)
      expect(await byCards(300_000_000n)).toMatchObject(confirmed)
      expect(await findChain().readAllowance(theirs, 'cards')).toEqual({
        ...first,
        spentMicros: 100_000_000n,
        onceMicros: 0n,
      })

      // An allowance signed by the owner replaces the earlier ones.
      const call = { kind: 'allowance', agentId: 'cards', dailyMicros: 99_000_000n } as const
      const grant = { ...buildPayment(theirs, newAddress(), 1n), call }
      const signature = await account.sign({ hash: findChain().operationOf(grant).hash })
      expect(await send({ ...grant, authorization: { kind: 'eoa', signature } })).toMatchObject(confirmed)
      expect(await byCards(1n)).toMatchObject(rejected)
    },
  )

  it('does not execute an expired operation', async () => {
    const wallet = buildWallet(walletWith(gateway).accountId)
    await fund(wallet, 10n)
    const late = { ...buildPayment(wallet, newAddress(), 1n), validUntil: new Date(Date.now() - 5_000) }
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
        ...buildPayment(wallet, newAddress(), 1n),
        authorization: gateway,
      }),
    )
    const outcomes = await Promise.all(payments.map(send))
    expect(outcomes.filter(({ status }) => status === 'confirmed')).toHaveLength(12)
    expect(outcomes.at(-1)).toMatchObject(rejected)
  })
}
