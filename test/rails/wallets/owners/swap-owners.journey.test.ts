/** The key that owns smart accounts is replaced, on two chains with the real contracts, without a stop. */

import { concat, createWalletClient, encodeFunctionData, http, pad, parseAbi, zeroAddress } from 'viem'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../../src/core/base/clock.ts'
import { newId } from '../../../../src/core/base/ids.ts'
import { type Chain, swapId, type Wallet } from '../../../../src/providers/chain/port.ts'
import { buildEscrow } from '../../../../src/rails/wallets/store.ts'
import { readGauges } from '../../../../src/records/gauges/read-gauges.ts'
import { onBothEngines } from '../../../engines.ts'
import type { Mainnet } from '../../../journeys/mainnet.ts'
import { hasAnvil } from '../../selling/x402/world.ts'
import { type Key, lower, newKey, newPayment, openScene, startNodes } from './scene.ts'

const safeAbi = parseAbi([
  'function addOwnerWithThreshold(address owner, uint256 threshold)',
  'function enableModule(address module)',
  'function execTransaction(address to, uint256 value, bytes data, uint8 operation, uint256 safeTxGas, uint256 baseGas, uint256 gasPrice, address gasToken, address refundReceiver, bytes signatures) payable returns (bool)',
])

describe.skipIf(!hasAnvil())('the key of owners', () => {
  const nodeOf = startNodes()

  onBothEngines('replaced on two chains', (database) => {
    const scene = openScene(database, nodeOf)

    it('pays all the time, and without the former key afterwards', async () => {
      const [first, second] = [newKey(), newKey()]
      const old = await scene.start(first)
      const [base, arbitrum] = old.chains
      if (base === undefined || arbitrum === undefined) throw new Error('two chains')
      const spender = await scene.openAccount(base)
      const idle = await scene.openAccount(base)
      const late = await scene.openAccount(base)
      await scene.fund(base, spender)
      await scene.fund(arbitrum, spender)
      await scene.fund(base, idle)
      await scene.pay(base, spender)
      await scene.pay(arbitrum, spender)

      const both = await scene.start(second, first)
      expect(await both.base.walletAddress(spender)).toBe(await base.walletAddress(spender))
      expect(await both.base.walletAddress(base.delegate)).toBe(await base.walletAddress(base.delegate))
      expect(await scene.countLeft(second)).toEqual([4, 4])
      // Its Safe has the former key, which signs for it.
      await scene.pay(both.base, spender)
      expect(await scene.readOwners(base, spender)).toEqual([lower(first.address)])
      await scene.runUntilFinished(both, second)
      expect(await scene.countLeft(second)).toEqual([0, 0])
      for (const chain of both.chains)
        expect(await scene.readOwners(chain, spender)).toEqual([lower(second.address)])
      // With money in it, it was deployed.
      expect(await scene.readOwners(base, idle)).toEqual([lower(second.address)])
      expect(await scene.readOwners(base, late)).toBeNull()
      await scene.pay(both.base, spender)

      // A gateway that was started before signs nothing for them, and says why.
      const refused = base.submit(newPayment(spender))
      await expect(refused).rejects.toMatchObject({
        code: 'provider_unavailable',
        message: expect.stringContaining('which this gateway does not have; nothing was signed'),
      })
      await expect(scene.start(first)).rejects.toThrow('was replaced by')

      const alone = await scene.start(second)
      for (const chain of alone.chains) await scene.pay(chain, spender)
      // A Safe that was never deployed begins with the first owner, and has the new one before it pays.
      await scene.fund(alone.base, late)
      await scene.pay(alone.base, late)
      expect(await scene.readOwners(base, late)).toEqual([lower(second.address)])
      const opened = await scene.openAccount(alone.base)
      expect(opened.origin).toEqual({ kind: 'gateway', first: lower(second.address) })
      for (const chain of alone.chains) {
        await scene.fund(chain, opened)
        await scene.pay(chain, opened)
        expect(await scene.readOwners(chain, opened)).toEqual([lower(second.address)])
      }
    }, 300_000)
  })

  onBothEngines('replaced by processes that are killed', (database) => {
    const scene = openScene(database, nodeOf)

    it('keeps a change before it is sent, and books what the chain shows', async () => {
      const [first, second] = [newKey(), newKey()]
      const old = await scene.start(first, undefined, { names: ['base'] })
      const wallet = await scene.openAccount(old.base)
      await scene.fund(old.base, wallet)
      await scene.pay(old.base, wallet)
      const readRow = () =>
        database()
          .kysely.selectFrom('owner_swap')
          .selectAll()
          .where('address', '=', lower(wallet.address))
          .executeTakeFirstOrThrow()
      const makeDue = () =>
        database()
          .kysely.updateTable('owner_swap')
          .set({ due_at: new Date(0) })
          .execute()

      // Dies before it sends.
      let sent = 0
      const mute = (chain: Chain): Chain => ({
        ...chain,
        submit: async () => {
          sent += 1
          throw new Error('killed')
        },
      })
      const dying = await scene.start(second, first, { names: ['base'], change: mute })
      await dying.round()
      expect(sent).toBe(1)
      expect(await scene.readOwners(old.base, wallet)).toEqual([lower(first.address)])
      expect(await readRow()).toMatchObject({
        state: 'sent',
        owner: lower(first.address),
        operation_hash: expect.stringMatching(/^0x\w{64}$/),
        signature: expect.stringMatching(/^0x\w{130}$/),
        transaction_hash: null,
      })
      const { signature } = await readRow()

      // Dies right after: the chain has it, and the database does not know.
      const deaf = (chain: Chain): Chain => ({
        ...chain,
        submit: async (operation) => {
          await chain.submit(operation)
          await scene.awaitExecuted(chain, operation)
          throw new Error('killed')
        },
      })
      const forgetful = await scene.start(second, first, { names: ['base'], change: deaf })
      await makeDue()
      await forgetful.round()
      expect(await scene.readOwners(old.base, wallet)).toEqual([lower(second.address)])
      expect(await readRow()).toMatchObject({ state: 'sent', owner: lower(first.address), signature })

      // Another one sends nothing again.
      const count = (chain: Chain): Chain => ({
        ...chain,
        submit: async (operation) => {
          if (operation.wallet.accountId === wallet.accountId) sent += 1
          return chain.submit(operation)
        },
      })
      const next = await scene.start(second, first, { names: ['base'], change: count })
      await makeDue()
      await nodeOf(next.base).request('anvil_mine', ['0x3'])
      await scene.runUntilFinished(next, second)
      expect(sent).toBe(1)
      expect(await readRow()).toMatchObject({ state: 'swapped', owner: lower(second.address), attempt: 0 })
    }, 240_000)
  })

  onBothEngines('replaced on a chain that loses blocks', (database) => {
    const scene = openScene(database, nodeOf)

    it('is replaced again, without the former key', async () => {
      const [first, second] = [newKey(), newKey()]
      const old = await scene.start(first, undefined, { names: ['base'] })
      const wallet = await scene.openAccount(old.base)
      await scene.fund(old.base, wallet)
      await scene.pay(old.base, wallet)
      const both = await scene.start(second, first, { names: ['base'] })
      const { request } = nodeOf(old.base)
      const before = await request('evm_snapshot', [])
      await both.round()
      await expect
        .poll(() => scene.readOwners(old.base, wallet), { timeout: 30_000 })
        .toEqual([lower(second.address)])
      await request('evm_revert', [before])
      expect(await scene.readOwners(old.base, wallet)).toEqual([lower(first.address)])
      // The one that signed it is gone, and the former key signs nothing any more.
      const mute = (chain: Chain): Chain => ({ ...chain, signAs: () => Promise.reject(new Error('no key')) })
      await scene.runUntilFinished(
        await scene.start(second, first, { names: ['base'], change: mute }),
        second,
      )
      const alone = await scene.start(second, undefined, { names: ['base'] })
      expect(await scene.readOwners(old.base, wallet)).toEqual([lower(second.address)])
      await scene.pay(alone.base, wallet)
    }, 240_000)
  })

  onBothEngines('taken by somebody else before', (database) => {
    const scene = openScene(database, nodeOf)

    it('raises an alarm for a Safe that has a stranger as an owner too, and never books it as replaced', async () => {
      const [first, second, thief] = [newKey(), newKey(), newKey()]
      const old = await scene.start(first, undefined, { names: ['base'] })
      const wallet = await scene.openAccount(old.base)
      await scene.fund(old.base, wallet)
      await scene.pay(old.base, wallet)
      const data = encodeFunctionData({
        abi: safeAbi,
        functionName: 'addOwnerWithThreshold',
        args: [thief.address, 1n],
      })
      await callAsOwner(nodeOf(old.base), { owner: first, safe: wallet.address, data })
      const both = await scene.start(second, first, { names: ['base'] })
      await scene.runUntilFinished(both, second)
      const row = await database()
        .kysely.selectFrom('owner_swap')
        .select('state')
        .where('address', '=', lower(wallet.address))
        .executeTakeFirstOrThrow()
      expect(row.state).toBe('foreign')
      const alarms = await database().kysely.selectFrom('alarm').select(['object_id', 'reason']).execute()
      expect(alarms).toEqual([{ object_id: lower(wallet.address), reason: 'foreign_owner' }])
    }, 240_000)
  })

  onBothEngines('replaced in many Safes', (database) => {
    const scene = openScene(database, nodeOf)

    it('changes all of them in one round', async () => {
      const [first, second] = [newKey(), newKey()]
      const old = await scene.start(first, undefined, { names: ['base'] })
      const wallets: Wallet[] = []
      for (let count = 0; count < 5; count += 1) {
        const wallet = await scene.openAccount(old.base)
        await scene.fund(old.base, wallet)
        await scene.pay(old.base, wallet)
        wallets.push(wallet)
      }
      const both = await scene.start(second, first, { names: ['base'] })
      await both.round()
      const readAll = () => Promise.all(wallets.map((wallet) => scene.readOwners(old.base, wallet)))
      await expect.poll(readAll, { timeout: 30_000 }).toEqual(wallets.map(() => [lower(second.address)]))
    }, 240_000)
  })

  onBothEngines('replaced where somebody else has used it', (database) => {
    const scene = openScene(database, nodeOf)

    it('is replaced where a thief has used up the nonce of the change', async () => {
      const [first, second] = [newKey(), newKey()]
      const old = await scene.start(first, undefined, { names: ['base'] })
      const wallet = await scene.openAccount(old.base)
      await scene.fund(old.base, wallet)
      const change = { from: lower(first.address), to: lower(second.address) }
      const inPlace = { ...newPayment(wallet), id: swapId(change) }
      expect(await old.base.submit(inPlace)).toMatchObject({ status: 'submitted' })
      await scene.awaitExecuted(old.base, inPlace)
      await scene.runUntilFinished(await scene.start(second, first, { names: ['base'] }), second)
      expect(await scene.readOwners(old.base, wallet)).toEqual([lower(second.address)])
      await scene.pay((await scene.start(second, undefined, { names: ['base'] })).base, wallet)
    }, 240_000)
  })

  onBothEngines('replaced before any agent has paid', (database) => {
    const scene = openScene(database, nodeOf)

    it('deploys the Safe that spends allowances at once, whose former key a thief would keep', async () => {
      const [first, second] = [newKey(), newKey()]
      const { base } = await scene.start(first, undefined, { names: ['base'] })
      expect(await scene.readOwners(base, base.delegate)).toBeNull()
      await scene.runUntilFinished(await scene.start(second, first, { names: ['base'] }), second)
      expect(await scene.readOwners(base, base.delegate)).toEqual([lower(second.address)])
    }, 240_000)
  })

  onBothEngines('used by somebody else before a wallet gets its owner', (database) => {
    const scene = openScene(database, nodeOf)

    it('hands no Safe over in which somebody else has put a module', async () => {
      const [first, ada] = [newKey(), newKey()]
      const { base } = await scene.start(first, undefined, { names: ['base'] })
      const wallet = await scene.openAccount(base)
      await scene.fund(base, wallet)
      await scene.pay(base, wallet)
      const data = encodeFunctionData({
        abi: safeAbi,
        functionName: 'enableModule',
        args: [base.tokens.USDC ?? '0x'],
      })
      await callAsOwner(nodeOf(base), { owner: first, safe: wallet.address, data })
      const owner = { kind: 'eoa', address: lower(ada.address) }
      await database()
        .kysely.updateTable('wallet')
        .set({ owner: JSON.stringify(owner) })
        .where('account_id', '=', wallet.accountId)
        .execute()
      const given = await scene.readWallet(wallet.accountId)
      const payment = newPayment(given)
      const signature = await ada.sign({ hash: base.buildOperation(payment).hash })
      await expect(
        base.submit({ ...payment, authorization: { kind: 'eoa', signature } }),
      ).rejects.toMatchObject({ message: expect.stringContaining('was not handed over') })
      expect(await scene.readOwners(base, given)).toEqual([lower(first.address)])
    }, 240_000)
  })

  onBothEngines('added to by its owner before it is handed over', (database) => {
    const scene = openScene(database, nodeOf)

    it('takes no Safe for handed over in which a key of the gateway is left beside its owner', async () => {
      const [first, second, ada] = [newKey(), newKey(), newKey()]
      const { base } = await scene.start(first, undefined, { names: ['base'] })
      const wallet = await scene.openAccount(base)
      await scene.fund(base, wallet)
      await scene.pay(base, wallet)
      const data = encodeFunctionData({
        abi: safeAbi,
        functionName: 'addOwnerWithThreshold',
        args: [ada.address, 1n],
      })
      await callAsOwner(nodeOf(base), { owner: first, safe: wallet.address, data })
      const owner = { kind: 'eoa', address: lower(ada.address) }
      await database()
        .kysely.updateTable('wallet')
        .set({ owner: JSON.stringify(owner) })
        .where('account_id', '=', wallet.accountId)
        .execute()
      const given = await scene.readWallet(wallet.accountId)
      const payment = newPayment(given)
      const signature = await ada.sign({ hash: base.buildOperation(payment).hash })
      await expect(
        base.submit({ ...payment, authorization: { kind: 'eoa', signature } }),
      ).rejects.toMatchObject({ message: expect.stringContaining('was not handed over') })
      const both = await scene.start(second, first, { names: ['base'] })
      await scene.runUntilFinished(both, second)
      const row = await database()
        .kysely.selectFrom('owner_swap')
        .select('state')
        .where('address', '=', lower(wallet.address))
        .executeTakeFirstOrThrow()
      expect(row.state).toBe('foreign')
      const alarms = await database().kysely.selectFrom('alarm').select(['object_id', 'reason']).execute()
      expect(alarms).toEqual([{ object_id: lower(wallet.address), reason: 'foreign_owner' }])
    }, 240_000)
  })

  onBothEngines('replaced while wallets get owners and agents spend', (database) => {
    const scene = openScene(database, nodeOf)
    const give = async (wallet: Wallet, key: Key) => {
      const owner = { kind: 'eoa', address: lower(key.address) }
      await database()
        .kysely.updateTable('wallet')
        .set({ owner: JSON.stringify(owner) })
        .where('account_id', '=', wallet.accountId)
        .execute()
      return scene.readWallet(wallet.accountId)
    }
    /** The owner allows an agent 5 USD a day. */
    const allow = async (chain: Chain, wallet: Wallet, key: Key) => {
      const call = { kind: 'allowance', agentId: 'agent', dailyMicros: 9_000_000n } as const
      const validUntil = new Date(Date.now() + 600_000)
      const operation = { wallet, id: newId('tx', systemClock()), call, validUntil }
      const signature = await key.sign({ hash: chain.buildOperation(operation).hash })
      const allowed = { ...operation, authorization: { kind: 'eoa', signature } } as const
      expect(await chain.submit(allowed)).toMatchObject({ status: 'submitted' })
      await scene.awaitExecuted(chain, allowed)
    }
    const byAgent = { kind: 'allowance', agentId: 'agent' } as const

    it('hands over with the key that each Safe has, and keeps allowances', async () => {
      const [first, second, ada, bob] = [newKey(), newKey(), newKey(), newKey()]
      const old = await scene.start(first)
      const wallet = await scene.openAccount(old.base)
      const late = await scene.openAccount(old.base)
      const [, arbitrum] = old.chains
      if (arbitrum === undefined) throw new Error('there is a second chain')
      await scene.fund(old.base, wallet)
      await scene.pay(old.base, wallet)
      const escrow = buildEscrow(wallet.accountId, null)
      await scene.send(old.base, await old.base.walletAddress(escrow))
      await scene.pay(old.base, escrow)
      await database()
        .kysely.updateTable('wallet')
        .set({ escrow: lower(await old.base.walletAddress(escrow)), escrow_mac: 'of a test' })
        .where('account_id', '=', wallet.accountId)
        .execute()

      const both = await scene.start(second, first)
      const given = await give(wallet, ada)
      await allow(both.base, given, ada)
      expect(await scene.readOwners(old.base, given)).toEqual([lower(ada.address)])
      // The gateway's own Safe is deployed, and has the former key or already the new one.
      await scene.pay(both.base, given, byAgent)
      await scene.pay(both.base, escrow)
      await scene.runUntilFinished(both, second)
      const states = await database()
        .kysely.selectFrom('owner_swap')
        .select(['chain', 'account_id', 'is_escrow', 'state'])
        .where('chain', '=', 'base')
        .execute()
      const stateOf = (accountId: string | null, isEscrow = false) =>
        states.find((row) => row.account_id === accountId && row.is_escrow === isEscrow)?.state
      expect([stateOf(wallet.accountId), stateOf(wallet.accountId, true), stateOf(null)]).toEqual([
        'given',
        'swapped',
        'swapped',
      ])
      expect(await scene.readOwners(old.base, old.base.delegate)).toEqual([lower(second.address)])
      expect(await scene.readOwners(old.base, escrow)).toEqual([lower(second.address)])

      const alone = await scene.start(second)
      await scene.pay(alone.base, given, byAgent)
      await scene.pay(alone.base, escrow)
      // Without the former key: a wallet that was never deployed is handed over, and the other chain's own Safe is deployed.
      const lateGiven = await give(late, bob)
      const [, aloneArbitrum] = alone.chains
      if (aloneArbitrum === undefined) throw new Error('there is a second chain')
      await scene.fund(aloneArbitrum, late)
      await allow(aloneArbitrum, lateGiven, bob)
      expect(await scene.readOwners(arbitrum, lateGiven)).toEqual([lower(bob.address)])
      await scene.pay(aloneArbitrum, lateGiven, byAgent)
      expect(await scene.readOwners(arbitrum, arbitrum.delegate)).toEqual([lower(second.address)])
    }, 300_000)
  })

  onBothEngines('replaced during a rolling restart', (database) => {
    const scene = openScene(database, nodeOf)

    it('loses and repeats no payment of gateways with either configuration', async () => {
      const [first, second] = [newKey(), newKey()]
      const old = await scene.start(first, undefined, { names: ['base'] })
      const prepared = await scene.start(first, second, { names: ['base'] })
      const wallets = [await scene.openAccount(old.base), await scene.openAccount(old.base)]
      for (const wallet of wallets) {
        await scene.fund(old.base, wallet)
        await scene.pay(old.base, wallet)
      }
      const both = await scene.start(second, first, { names: ['base'] })
      const payees: `0x${string}`[] = []
      let isOver = false
      /** Repeats an operation at any gateway, as the settle-pending job does. */
      const payAt = async (gateways: readonly Chain[], wallet: Wallet) => {
        const payment = newPayment(wallet)
        payees.push(payment.call.to)
        for (let turn = 0; !isOver; turn += 1) {
          const chain = gateways[turn % gateways.length] ?? both.base
          const sent = await chain.submit(payment).catch(() => null)
          // The gateway would give a payment up that is refused; it never is one by a stale key.
          expect(sent?.status).not.toBe('refused')
          const { status } = await chain.awaitExecution(payment, 2_000).catch(() => ({ status: 'absent' }))
          if (status === 'executed') return
          // Without a watcher of blocks, a nonce that a lost transaction has left is read again here.
          if (sent !== null) await chain.forget()
        }
      }
      const paying = wallets.flatMap((wallet) =>
        [
          [both.base, prepared.base],
          [prepared.base, both.base],
          [old.base, both.base],
        ].map((gateways) => payAt(gateways, wallet)),
      )
      await scene.runUntilFinished(both, second)
      await Promise.all(paying)
      isOver = true
      for (const payee of payees) expect(await nodeOf(old.base).readBalance(payee)).toBe(1_000_000n)
      for (const wallet of wallets) {
        expect(await nodeOf(old.base).readBalance(wallet.address)).toBe(6_000_000n)
        expect(await scene.readOwners(old.base, wallet)).toEqual([lower(second.address)])
      }
      // What only knows the next key changes nothing back.
      const opened = await scene.openAccount(both.base)
      await scene.fund(prepared.base, opened)
      await scene.pay(prepared.base, opened)
      expect(await scene.readOwners(old.base, opened)).toEqual([lower(second.address)])
    }, 300_000)
  })

  onBothEngines('replaced once more while a gateway knows the next key only', (database) => {
    const scene = openScene(database, nodeOf)

    it('gives no Safe back to the key that is being replaced', async () => {
      const [first, second, third] = [newKey(), newKey(), newKey()]
      const names = ['base'] as const
      const old = await scene.start(first, undefined, { names })
      const late = await scene.openAccount(old.base)
      await scene.runUntilFinished(await scene.start(second, first, { names }), second)

      // The first step of the second replacement: both keys, of which the present one is still the second.
      const prepared = await scene.start(second, third, { names })
      await prepared.round()
      const both = await scene.start(third, second, { names })
      const opened = await scene.openAccount(both.base)
      expect(opened.origin).toEqual({ kind: 'gateway', first: lower(third.address) })
      await scene.fund(both.base, late)
      await scene.pay(both.base, late)
      expect(await scene.readOwners(old.base, late)).toEqual([lower(third.address)])
      const again = await scene.start(second, third, { names })
      for (const gateway of [prepared, again])
        for (let round = 0; round < 4; round += 1) {
          await gateway.round()
          await database()
            .kysely.updateTable('owner_swap')
            .set({ due_at: new Date(0) })
            .execute()
        }
      const back = await database()
        .kysely.selectFrom('owner_swap')
        .select(['address', 'from_owner'])
        .where('to_owner', '=', lower(second.address))
        .where('from_owner', '=', lower(third.address))
        .execute()
      expect(back).toEqual([])
      await scene.runUntilFinished(both, third)
      expect(await scene.readOwners(old.base, late)).toEqual([lower(third.address)])
      await scene.fund(both.base, opened)
      await scene.pay(both.base, opened)
      expect(await scene.readOwners(old.base, opened)).toEqual([lower(third.address)])
      expect(await database().kysely.selectFrom('alarm').select('reason').execute()).toEqual([])
    }, 300_000)
  })

  onBothEngines('replaced twice', (database) => {
    const scene = openScene(database, nodeOf)

    it('leads a Safe that was never deployed over every key, and a new chain needs the first key once', async () => {
      const [first, second, third] = [newKey(), newKey(), newKey()]
      const names = ['base'] as const
      const old = await scene.start(first, undefined, { names })
      const late = await scene.openAccount(old.base)
      await scene.runUntilFinished(await scene.start(second, first, { names }), second)
      const middle = await scene.openAccount((await scene.start(second, undefined, { names })).base)
      await scene.runUntilFinished(await scene.start(third, second, { names }), third)
      const alone = await scene.start(third, undefined, { names })
      for (const wallet of [late, middle]) {
        await scene.fund(alone.base, wallet)
        await scene.pay(alone.base, wallet)
        expect(await scene.readOwners(old.base, wallet)).toEqual([lower(third.address)])
      }

      const more = await scene.start(third)
      await more.round()
      expect(await scene.countLeft(third)).toEqual([0, 3])
      const [, arbitrum] = more.chains
      if (arbitrum === undefined) throw new Error('there is a second chain')
      await scene.fund(arbitrum, late)
      await expect(arbitrum.submit(newPayment(late))).rejects.toMatchObject({ code: 'provider_unavailable' })
      expect(await scene.readOwners(arbitrum, late)).toBeNull()
      const gauges = async () =>
        (
          await readGauges({
            database: database(),
            chains: { all: more.chains, absent: [] },
            clock: systemClock,
            settings: { anchorChain: null },
          })
        ).flatMap(({ name, labels, value }) =>
          name === 'former_owner_safes' ? [`${labels.chain} ${value}`] : [],
        )
      expect(await gauges()).toEqual(['base 0', 'arbitrum 3'])
      for (const [former, left] of [
        [first, 1],
        [second, 0],
      ] as const) {
        const signing = await scene.start(third, former)
        await database()
          .kysely.updateTable('owner_swap')
          .set({ due_at: new Date(0) })
          .execute()
        const run = async () => {
          await signing.round()
          return scene.countLeft(third)
        }
        await expect.poll(run, { timeout: 60_000, interval: 500 }).toEqual([0, left])
      }
      expect(await scene.readOwners(arbitrum, late)).toEqual([lower(third.address)])
      expect(await gauges()).toEqual(['base 0', 'arbitrum 0'])
      const [, later] = (await scene.start(third)).chains
      if (later === undefined) throw new Error('there is a second chain')
      await scene.pay(later, late)
      await scene.fund(later, middle)
      await scene.pay(later, middle)
    }, 300_000)
  })
})

/** Somebody who has a key that owns a Safe changes it, as the Safe. */
async function callAsOwner(
  { url, client, giveGas }: Mainnet,
  { owner, safe, data }: { owner: Key; safe: `0x${string}`; data: `0x${string}` },
): Promise<void> {
  await giveGas(owner.address)
  // The owner who sends the transaction need not sign.
  const approval = concat([pad(owner.address), pad('0x'), '0x01'])
  const wallet = createWalletClient({ account: owner, chain: client.chain, transport: http(url) })
  const hash = await wallet.writeContract({
    address: safe,
    abi: safeAbi,
    functionName: 'execTransaction',
    args: [safe, 0n, data, 0, 0n, 0n, 0n, zeroAddress, zeroAddress, approval],
  })
  expect(await client.waitForTransactionReceipt({ hash })).toMatchObject({ status: 'success' })
}
