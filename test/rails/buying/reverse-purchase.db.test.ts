/** Purchases that ended on a chain whose blocks were replaced since: what the chain shows now is booked, once. */
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { available, external, pursePlace } from '../../../src/books/ledger/accounts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { post } from '../../../src/books/ledger/post.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { createSimulatedChain } from '../../../src/chain/simulated/simulated.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { insertKey } from '../../../src/people/identity/store.ts'
import type { Chain } from '../../../src/providers/chain/port.ts'
import { executePayment, purseKey, signPayment } from '../../../src/rails/buying/authorization.ts'
import { cancelPurchase } from '../../../src/rails/buying/pay-purchase.ts'
import { findPurchase, insertPurchase, openPurse, type Purchase } from '../../../src/rails/buying/store.ts'
import { sweepPurses } from '../../../src/rails/buying/sweep-purse.ts'
import { openWallet } from '../../../src/rails/wallets/open-wallet.ts'
import { verifySettled } from '../../../src/server/jobs/verify-settled.ts'
import { buildSpend } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import { buildKeyPrincipal, newPerson, noon, servicesOn } from '../../kernel/scene.ts'
import { signedPurchase } from './signed-purchase.ts'

const running = new AbortController().signal
const MINUTE_MS = 60_000
const SELLER = '0x976ea74026e726554db657fa54763abd0c3a0aa9'
const validBefore = new Date(noon.getTime() + MINUTE_MS)

onBothEngines('a purchase whose authorization was cancelled', (database) => {
  const newChain = () => createSimulatedChain({ clock: () => noon, log: silentLog, identity: 'simulated' })

  /** A key's purchase of 100 units, signed; its purse has 700 on every chain. */
  const open = async () => {
    const services = await servicesOn(database(), { chain: await newChain() })
    const { dataKey } = services.settings
    const { account } = await newPerson(database())
    const home = await openWallet(services, { accountId: account.id, at: noon })
    const { key } = buildKeyPrincipal(account)
    await insertKey(database(), account.id, { ...key, secretHash: null })
    const purse = purseKey(dataKey, key.id)
    await openPurse(
      { database: database(), dataKey },
      { id: key.id, accountId: account.id, address: purse.address, home, chunk: 0n, at: noon },
    )
    await post(database(), {
      id: `fund:${key.id}`,
      kind: 'deposit',
      reference: key.id,
      at: noon,
      postings: [
        {
          source: external('base-sepolia'),
          destination: available(account.id, pursePlace(key.id)),
          money: { asset: 'USDC', units: 700n },
        },
      ],
    })
    const fund = (chain: Chain) => chain.mint([{ token: 'USDC', to: purse.address, units: 700n }])
    await fund(services.chain)
    const spend = buildSpend({ accountId: account.id, keyId: key.id }, 100n, {
      operation: 'purchases.buy',
      purse: { id: key.id, chunk: 0n },
    })
    await reserveSpend(database(), spend)
    const { decisionId } = spend
    const written = signedPurchase({
      accountId: account.id,
      keyId: key.id,
      decisionId,
      address: purse.address,
      units: 100n,
    })
    const nonce = `0x${Buffer.from(decisionId).toString('hex').padEnd(64, '0').slice(0, 64)}` as const
    const row = {
      ...written,
      nonce,
      token: services.chain.tokens.USDC.toLowerCase() as `0x${string}`,
      payTo: SELLER,
      signed: written.signed && { ...written.signed, validBefore },
    } as const
    expect(await insertPurchase(database(), row)).toBe('signed')
    const read = async (): Promise<Purchase> => {
      const purchase = await findPurchase(database(), { decisionId })
      if (purchase === undefined) throw new Error('the purchase has no row')
      return purchase
    }
    /** The seller uses the authorization. */
    const take = async (chain: Chain) => {
      const message = {
        from: purse.address,
        to: SELLER,
        value: 100n,
        validAfter: 0n,
        validBefore: BigInt(validBefore.getTime() / 1_000),
        nonce,
      } as const
      const signature = await signPayment(chain, purse, { asset: 'USDC', message })
      await executePayment(chain, { asset: 'USDC', message, signature })
    }
    /** Verifies what has ended, on a chain that has replaced the former one. @returns how many are not certain. */
    const verify = async (chain: Chain, minutes = 0) => {
      const clock = () => new Date(noon.getTime() + minutes * MINUTE_MS)
      const parts = { ...services, chain, clock }
      await verifySettled(parts, { since: noon, identity: 'simulated' }, running)
      return read()
    }
    const replaced = async () => {
      const chain = await newChain()
      await fund(chain)
      return chain
    }
    const readUnits = async (place: string) =>
      (await balances(database(), account.id)).find((found) => found.place === place)?.available ?? 0n
    const readUsage = async () =>
      (
        await database()
          .kysely.selectFrom('budget_usage')
          .select(['used_micros', 'count'])
          .where('key_id', '=', key.id)
          .execute()
      ).map(({ used_micros, count }) => [used_micros, Number(count)])
    const cancel = async () => cancelPurchase(services, await read())
    return { services, account, key, take, verify, replaced, read, readUnits, readUsage, cancel }
  }

  it('is cancelled again where the chain has lost the cancellation', async () => {
    const { take, verify, replaced, cancel } = await open()
    await cancel()
    const chain = await replaced()
    expect(await verify(chain)).toMatchObject({ state: 'failed' })
    await expect(take(chain)).rejects.toThrow(/used or canceled/)
    expect(await chain.readBalance('USDC', SELLER)).toBe(0n)
  })

  it('is paid where its seller was faster, and counts in its budget again', async () => {
    const { key, take, verify, replaced, readUnits, readUsage, cancel } = await open()
    const counted = await readUsage()
    await cancel()
    expect(await readUnits(pursePlace(key.id))).toBe(700n)
    expect(await readUsage()).not.toEqual(counted)
    const chain = await replaced()
    await take(chain)
    for (let round = 0; round < 2; round += 1)
      expect(await verify(chain)).toMatchObject({
        state: 'settled',
        transaction_hash: expect.stringMatching(/^0x/),
      })
    expect(await readUnits(pursePlace(key.id))).toBe(600n)
    expect(await readUsage()).toEqual(counted)
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('is paid from the wallet once its purse was swept', async () => {
    const { services, key, take, verify, replaced, readUnits, cancel } = await open()
    await cancel()
    const later = { ...services, clock: () => new Date(noon.getTime() + MINUTE_MS) }
    await sweepPurses(later, running)
    expect([await readUnits(pursePlace(key.id)), await readUnits('base-sepolia')]).toEqual([0n, 700n])
    const chain = await replaced()
    await take(chain)
    const { id, state } = await verify(chain, 1)
    expect(state).toBe('settled')
    expect(await readUnits('base-sepolia')).toBe(600n)
    const { rows } = await sql`
      select l.kind, l.reference, p.ordinal, p.units from posting p join ledger_transaction l on l.id = p.transaction_id
      where p.transaction_id like ${`restored:${id}:%`}`.execute(database().kysely)
    expect(rows).toEqual([{ kind: 'purchase_restored', reference: id, ordinal: 1, units: 100n }])
  })

  it('waits for its money, and raises an alarm where none comes', async () => {
    const { account, key, take, verify, replaced, readUnits, cancel } = await open()
    await cancel()
    await post(database(), {
      id: `spend:${key.id}`,
      kind: 'test',
      reference: key.id,
      at: noon,
      postings: [
        {
          source: available(account.id, pursePlace(key.id)),
          destination: external('base-sepolia'),
          money: { asset: 'USDC', units: 650n },
        },
      ],
    })
    const chain = await replaced()
    await take(chain)
    const { id } = await verify(chain)
    const alarms = () =>
      database().kysely.selectFrom('alarm').select('reason').where('object_id', '=', id).execute()
    expect(await alarms()).toEqual([])
    expect(await verify(chain, 60)).toMatchObject({ state: 'failed' })
    expect(await alarms()).toEqual([{ reason: 'paid_after_failure' }])
    expect(await readUnits(pursePlace(key.id))).toBe(50n)
  })

  it('is paid, lost and paid again as often as the chain changes', async () => {
    const { key, take, verify, replaced, readUnits, cancel } = await open()
    await cancel()
    const [paid, canceled] = [await replaced(), await replaced()]
    await take(paid)
    const seen: bigint[] = []
    for (let round = 0; round < 3; round += 1) {
      expect(await verify(paid)).toMatchObject({ state: 'settled', reversed_at: null })
      seen.push(await readUnits(pursePlace(key.id)))
      const isOver = { ...canceled, authorizationState: async () => ({ status: 'canceled' }) as const }
      expect(await verify({ ...isOver, isAuthorizationOver: async () => true })).toMatchObject({
        state: 'failed',
      })
      seen.push(await readUnits(pursePlace(key.id)))
    }
    expect(seen).toEqual([600n, 700n, 600n, 700n, 600n, 700n])
    expect((await trialBalance(database())).balanced).toBe(true)
  })
})
