/** The chain port's contract, which every adapter passes. */
import { randomBytes } from 'node:crypto'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { operationOutcome } from '../../src/books/evidence/operation-outcome.ts'
import type {
  Address,
  AuthorizedOperation,
  Chain,
  Hex,
  Submission,
  Wallet,
} from '../../src/providers/chain/port.ts'
import { testAuthorizations } from './chain-authorizations.ts'
import { testOwners } from './chain-owners.ts'

const WAIT_MS = 10_000

export function newAddress(): Address {
  return privateKeyToAccount(generatePrivateKey()).address
}

function newName(prefix: string): string {
  return `${prefix}_${randomBytes(8).toString('hex')}`
}

/** The gateway-signed wallet of an account. */
export function buildWallet(accountId: string): Wallet {
  return { accountId, origin: { kind: 'gateway' }, owner: { kind: 'gateway' } }
}

/** An account with this many units of USDC in its Safe. */
export async function fundedAccount(chain: Chain, units: bigint): Promise<string> {
  const accountId = newName('acct')
  await chain.mint([{ token: 'USDC', to: await chain.walletAddress(buildWallet(accountId)), units }])
  return accountId
}

/** A transfer of USDC with a new id. */
export function buildTransfer(accountId: string, to: Address, units: bigint): AuthorizedOperation {
  return {
    wallet: buildWallet(accountId),
    id: newName('tx'),
    call: { kind: 'transfer', token: 'USDC', to, units },
    validUntil: new Date(Date.now() + 10 * 60_000),
    authorization: { kind: 'gateway' },
  }
}

function requireHash(submission: Submission): Hex {
  if (submission.status === 'refused') throw new Error(`refused: ${submission.reason}`)
  return submission.transactionHash
}

/** Declares the suite. @param open makes the chain; the suite closes it. */
export function testChain(name: string, open: () => Promise<Chain>): void {
  describe(`chain: ${name}`, () => {
    let chain: Chain
    beforeAll(async () => {
      chain = await open()
    })
    afterAll(() => chain?.close())

    const readBalance = (address: Address) => chain.readBalance('USDC', address)
    const send = async (transfer: AuthorizedOperation) => {
      const submission = await chain.submit(transfer)
      return submission.status === 'refused' ? submission : operationOutcome(chain, transfer, WAIT_MS)
    }

    it('describes itself', async () => {
      expect(chain).toMatchObject({ name: 'base-sepolia', id: 84532 })
      expect(chain.tokens.USDC).toBe('0x036CbD53842c5426634e7929541eC2318f3dCF7e')
      expect(new Set(Object.values(chain.tokens)).size).toBe(4)
      expect(await chain.blockNumber()).toBeGreaterThanOrEqual(0n)
    })

    it('gives each account one address of its own', async () => {
      const [one, again, other] = await Promise.all(
        ['a', 'a', 'b'].map((id) => chain.walletAddress(buildWallet(`acct_${id}`))),
      )
      expect(one).toMatch(/^0x[0-9a-fA-F]{40}$/)
      expect(again).toBe(one)
      expect(other).not.toBe(one)
    })

    it('mints every token to many addresses at once', async () => {
      const addresses = Array.from({ length: 450 }, newAddress)
      const last = newAddress()
      await chain.mint([
        ...addresses.map((to) => ({ token: 'USDC' as const, to, units: 5n })),
        ...(['USDT', 'EURC', 'PYUSD'] as const).map((token) => ({ token, to: last, units: 7n })),
      ])
      const minted = await Promise.all(addresses.map(readBalance))
      expect(minted.every((units) => units === 5n)).toBe(true)
      for (const token of ['USDT', 'EURC', 'PYUSD'] as const)
        expect(await chain.readBalance(token, last)).toBe(7n)
      expect(await readBalance(last)).toBe(0n)
    })

    it('has the module pending before the first transfer and active after it', async () => {
      const accountId = await fundedAccount(chain, 10n)
      const [before] = await chain.modules(buildWallet(accountId))
      expect(before).toMatchObject({ name: 'Safe4337Module', version: '0.3.0', status: 'pending_deployment' })
      expect(await send(buildTransfer(accountId, newAddress(), 1n))).toMatchObject({ status: 'confirmed' })
      expect(await chain.modules(buildWallet(accountId))).toEqual([{ ...before, status: 'active' }])
    })

    it('moves exactly the amount of a transfer', async () => {
      const accountId = await fundedAccount(chain, 1_000_000n)
      const to = newAddress()
      const transfer = buildTransfer(accountId, to, 250_001n)
      const submission = await chain.submit(transfer)
      expect(requireHash(submission)).toMatch(/^0x[0-9a-f]{64}$/)
      expect(await operationOutcome(chain, transfer, WAIT_MS)).toEqual({
        status: 'confirmed',
        transactionHash: requireHash(submission),
      })
      expect(await readBalance(to)).toBe(250_001n)
      expect(await readBalance(await chain.walletAddress(buildWallet(accountId)))).toBe(749_999n)
    })

    it('moves every token, and accepts an address in any letter case', async () => {
      const accountId = newName('acct')
      const wallet = await chain.walletAddress(buildWallet(accountId))
      const to: Address = '0x00000000000000000000000000000000000ABCdE'
      for (const token of ['USDT', 'EURC', 'PYUSD'] as const) {
        const before = await chain.readBalance(token, to)
        await chain.mint([{ token, to: wallet, units: 9n }])
        const transfer = {
          ...buildTransfer(accountId, to, 9n),
          call: { kind: 'transfer', token, to, units: 9n },
        } as const
        expect(await send(transfer)).toMatchObject({ status: 'confirmed' })
        expect(await chain.readBalance(token, to)).toBe(before + 9n)
      }
    })

    it('has no outcome for a transfer that was never submitted', async () => {
      expect(await operationOutcome(chain, buildTransfer(newName('acct'), newAddress(), 1n), 0)).toEqual({
        status: 'absent',
      })
    })

    it('executes an id once when it is submitted repeatedly', async () => {
      const accountId = await fundedAccount(chain, 100n)
      const to = newAddress()
      const transfer = buildTransfer(accountId, to, 100n)
      const first = await chain.submit(transfer)
      await operationOutcome(chain, transfer, WAIT_MS)
      // The wallet is empty now, yet the resubmission is not refused: it was executed.
      expect(await chain.submit(transfer)).toEqual(first)
      expect(await readBalance(to)).toBe(100n)
    })

    it('executes an id once when it is submitted twenty times concurrently', async () => {
      const accountId = await fundedAccount(chain, 100n)
      const to = newAddress()
      const transfer = buildTransfer(accountId, to, 3n)
      const submissions = await Promise.all(Array.from({ length: 20 }, () => chain.submit(transfer)))
      expect(new Set(submissions.map(requireHash)).size).toBe(1)
      expect(await operationOutcome(chain, transfer, WAIT_MS)).toMatchObject({ status: 'confirmed' })
      expect(await readBalance(to)).toBe(3n)
    })

    it('executes forty transfers of a new account concurrently', async () => {
      const accountId = await fundedAccount(chain, 40n)
      const to = newAddress()
      const outcomes = await Promise.all(
        Array.from({ length: 40 }, () => send(buildTransfer(accountId, to, 1n))),
      )
      expect(outcomes.filter(({ status }) => status === 'confirmed')).toHaveLength(40)
      expect(await readBalance(to)).toBe(40n)
    })

    it('refuses amounts beyond the balance, and accepts the same id once the balance suffices', async () => {
      const accountId = await fundedAccount(chain, 10n)
      const to = newAddress()
      const transfer = buildTransfer(accountId, to, 11n)
      expect(await chain.submit(transfer)).toEqual({
        status: 'refused',
        reason: 'ERC20: transfer amount exceeds balance',
        cause: 'transfer',
      })
      expect(await operationOutcome(chain, transfer, 0)).toEqual({ status: 'absent' })
      expect(await readBalance(to)).toBe(0n)
      await chain.mint([{ token: 'USDC', to: await chain.walletAddress(buildWallet(accountId)), units: 1n }])
      expect(await send(transfer)).toMatchObject({ status: 'confirmed' })
      expect(await readBalance(to)).toBe(11n)
    })

    it('never moves more than the balance, and reports which transfer failed', async () => {
      const accountId = await fundedAccount(chain, 100n)
      await send(buildTransfer(accountId, newAddress(), 10n))
      const to = newAddress()
      const outcomes = await Promise.all(
        Array.from({ length: 5 }, () => send(buildTransfer(accountId, to, 60n))),
      )
      const statuses = outcomes.map(({ status }) => status)
      expect(statuses.filter((status) => status === 'confirmed')).toHaveLength(1)
      expect(statuses.every((status) => ['confirmed', 'failed', 'refused'].includes(status))).toBe(true)
      expect(await readBalance(to)).toBe(60n)
    })

    testAuthorizations(() => chain)
    testOwners(() => chain, name !== 'simulated')
  })
}
