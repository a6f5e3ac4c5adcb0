/** The books of a channel under any answers of its seller: never signed for more than was bought, and at the end what the chain shows. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { available, external, pursePlace } from '../../../src/books/ledger/accounts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { post } from '../../../src/books/ledger/post.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { newId } from '../../../src/core/base/ids.ts'
import {
  claimChannel,
  findChannel,
  findUnanswered,
  keepVoucher,
  openChannel,
  setAside,
  settleVoucher,
} from '../../../src/rails/buying/channels/channel-store.ts'
import { countUnclaimed } from '../../../src/rails/buying/channels/count-unclaimed.ts'
import { findPurchase, insertPurchase, openPurse, viewSigned } from '../../../src/rails/buying/store.ts'
import { callForRow } from '../../../src/storage/database.ts'
import { buildSpend, noon, openAccount, openKey, place } from '../../books/spending/scene.ts'
import { onBothEngines } from '../../engines.ts'
import { signedPurchase } from './signed-purchase.ts'

const DEPOSIT = 200n
const destination = external(place)

/** A purchase, and what its seller does with the voucher: delivers, takes it without an answer, or takes nothing. */
const step = fc.record({
  units: fc.bigInt({ min: 1n, max: 20n }),
  fate: fc.constantFrom('deliver' as const, 'deliver' as const, 'lose' as const, 'refuse' as const),
})

onBothEngines('the books of a channel', (database) => {
  const open = async () => {
    const accountId = await openAccount(database(), 0n)
    const keyId = await openKey(database(), accountId)
    const id = `chn_${newId('key', noon).slice(4)}`
    const address = `0x${Buffer.from(id).toString('hex').slice(-40)}` as const
    await openPurse(
      { database: database(), dataKey: Buffer.alloc(32, 1) },
      { id, accountId, address, home: address, chunk: 0n, at: noon },
    )
    await openChannel(database(), {
      ...{ id, accountId, keyId, origin: 'https://a.example.com', payTo: '0xb', asset: 'USDC', chain: place },
      ...{ network: 'eip155:84532', token: '0xa', receiverAuthorizer: '0xc', withdrawDelay: 900 },
      ...{ hash: `0x${id}`, at: noon },
    })
    await database().kysely.updateTable('channel').set({ deposit: DEPOSIT }).where('id', '=', id).execute()
    await post(database(), {
      ...{ id: `fund:${id}`, kind: 'deposit', reference: id, at: noon },
      postings: [
        {
          source: destination,
          destination: available(accountId, pursePlace(id)),
          money: { asset: 'USDC', units: DEPOSIT },
        },
      ],
    })
    const requireChannel = async () => {
      const channel = await findChannel(database(), id)
      if (channel === undefined) throw new Error('no channel')
      return channel
    }
    /** Reserves a purchase, and writes it with its voucher. @returns its verdict; null: the channel has not so much. */
    const buy = async (units: bigint, { busyUntil = noon } = {}) => {
      const spend = buildSpend({ accountId, keyId }, units, {
        operation: 'purchases.buy',
        purse: { id, chunk: 0n, isOnly: true },
      })
      const { decisionId } = spend
      if ((await reserveSpend(database(), spend)).verdict !== 'allow') return null
      const cumulative = (await requireChannel()).booked + units
      const purchase = signedPurchase({ accountId, keyId, decisionId, address, units })
      const signed = {
        validBefore: null,
        sinceBlock: 1n,
        credential: Uint8Array.from(Buffer.from('sealed')),
        credentialHash: 'hash',
        cumulative,
      }
      const written = {
        ...purchase,
        ...{ scheme: 'batch-settlement' as const, purseId: id, signed, busyUntil },
        origin: 'https://a.example.com',
      }
      const verdict = await insertPurchase(database(), written)
      // The buyer goes on with this, and does not read the row.
      if (verdict === 'signed')
        expect(await findPurchase(database(), { id: purchase.purchaseId })).toEqual(viewSigned(written))
      return { purchaseId: purchase.purchaseId, verdict, cumulative }
    }
    const claim = (purchaseId: string) => claimChannel(database(), { id: purchaseId, at: noon })
    const sign = (purchaseId: string, cumulative: bigint) =>
      keepVoucher(database(), {
        ...{ id: purchaseId, cumulative, sinceBlock: 1n, at: noon },
        ...{ credential: Buffer.from('sealed'), credentialHash: 'hash' },
      })
    const settle = (purchaseId: string, cumulative: bigint) =>
      settleVoucher(database(), { id: purchaseId, cumulative, destination, at: noon })
    const end = async (claimed: bigint) => {
      await database()
        .kysely.updateTable('channel')
        .set({ status: 'closing' })
        .where('id', '=', id)
        .where('status', '=', 'open')
        .execute()
      return callForRow<{ verdict: string; missing: bigint }>(
        database(),
        { name: 'test_channel_end', text: 'select verdict, missing from channel_end($1, $2, $3)' },
        [id, claimed, noon],
      )
    }
    const readBooked = async () => {
      const row = (await balances(database(), accountId)).find((each) => each.place === pursePlace(id))
      return { available: row?.available ?? 0n, held: row?.held ?? 0n }
    }
    const purchases = () =>
      database().kysely.selectFrom('purchase').selectAll().where('purse_id', '=', id).execute()
    return { accountId, keyId, id, requireChannel, buy, claim, sign, settle, end, readBooked, purchases }
  }

  it('follow the contract, whatever the seller answers and claims', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), fc.nat(1_000), async (steps, share) => {
        const { keyId, id, requireChannel, buy, claim, sign, settle, end, readBooked, purchases } =
          await open()
        /** What a stock seller has charged. */
        let charged = 0n
        for (const { units, fate } of steps) {
          const bought = await buy(units)
          if (bought === null) continue
          expect(bought.verdict).toBe('signed')
          let { cumulative } = bought
          const { purchaseId } = bought
          for (let tries = 0; cumulative !== charged + units; tries += 1) {
            expect(tries).toBeLessThan(3)
            const other = await findUnanswered(database(), {
              ...{ channelId: id, cumulative: charged, except: purchaseId },
            })
            if (other !== undefined) expect(await settle(other, charged)).toBe('settled')
            const next = await claim(purchaseId)
            expect(next.verdict).toBe('sign')
            cumulative = next.cumulative
            expect(await sign(purchaseId, cumulative)).toBe(true)
          }
          if (fate !== 'refuse') charged = cumulative
          if (fate === 'deliver') expect(await settle(purchaseId, cumulative)).toBe('settled')
          const channel = await requireChannel()
          const booked = await readBooked()
          expect(channel.signed - channel.booked).toBeLessThanOrEqual(booked.held)
          expect(booked.available + booked.held).toBe(DEPOSIT - channel.booked)
          expect(charged).toBeLessThanOrEqual(channel.signed)
        }
        const { signed, booked } = await requireChannel()
        // It may claim anything up to the highest voucher.
        const claimed = (signed * BigInt(share)) / 1_000n
        expect(await end(claimed)).toEqual({ verdict: 'closed', missing: 0n })
        expect(await end(0n)).toMatchObject({ verdict: 'none' })
        expect(await readBooked()).toEqual({ available: DEPOSIT - claimed, held: 0n })
        const rows = await purchases()
        expect(rows.filter(({ state }) => state !== 'settled' && state !== 'failed')).toEqual([])
        const paid = rows.reduce((sum, row) => sum + (row.charged ?? 0n), 0n)
        expect(paid).toBe(claimed > booked ? claimed : booked)
        const ended = await requireChannel()
        const unclaimed = rows.reduce((sum, row) => sum + countUnclaimed(ended, row), 0n)
        expect(unclaimed).toBe(booked > claimed ? booked - claimed : 0n)
        const usage = await database()
          .kysely.selectFrom('budget_usage')
          .select('used_micros')
          .where('key_id', '=', keyId)
          .executeTakeFirst()
        expect(usage?.used_micros ?? 0n).toBe(paid)
        expect(await trialBalance(database())).toMatchObject({ balanced: true, drifts: [] })
      }),
      {
        numRuns: 25,
        // A refused voucher for 17, then one for 8 that is paid, and one for 17 again whose answer is lost.
        examples: [
          [
            [
              { units: 17n, fate: 'refuse' },
              { units: 8n, fate: 'deliver' },
              { units: 9n, fate: 'lose' },
              { units: 1n, fate: 'deliver' },
            ],
            0,
          ],
        ],
      },
    )
  }, 120_000)

  it('present one voucher at a time', async () => {
    const { buy, claim, settle, sign } = await open()
    const later = new Date(noon.getTime() + 60_000)
    const first = await buy(5n, { busyUntil: later })
    const second = await buy(7n, { busyUntil: later })
    expect([first?.verdict, second?.verdict]).toEqual(['signed', 'reserved'])
    if (first == null || second == null) throw new Error('not bought')
    expect(await claim(second.purchaseId)).toMatchObject({ verdict: 'busy' })
    expect(await sign(second.purchaseId, 7n)).toBe(false)
    expect(await settle(first.purchaseId, 5n)).toBe('settled')
    expect(await claim(second.purchaseId)).toMatchObject({ verdict: 'sign', cumulative: 12n })
    expect(await sign(second.purchaseId, 7n)).toBe(false)
    expect(await sign(second.purchaseId, 12n)).toBe(true)
    expect(await claim(second.purchaseId)).toMatchObject({ verdict: 'present', cumulative: 12n })
    expect(await settle(second.purchaseId, 7n)).toBe('stale')
    expect(await settle(second.purchaseId, 12n)).toBe('settled')
    expect(await settle(second.purchaseId, 12n)).toBe('already_settled')
  })

  it('sign nothing for a paused key, for a channel that ends, or beyond the deposit', async () => {
    const { keyId, id, buy, claim } = await open()
    expect(await buy(DEPOSIT + 1n)).toBe(null)
    await database().kysely.updateTable('channel').set({ deposit: 4n }).where('id', '=', id).execute()
    const beyond = await buy(5n)
    expect(beyond?.verdict).toBe('reserved')
    expect(await claim(String(beyond?.purchaseId))).toMatchObject({ verdict: 'deposit', cumulative: 5n })
    await database().kysely.updateTable('channel').set({ status: 'closing' }).where('id', '=', id).execute()
    expect((await buy(1n))?.verdict).toBe('reserved')
    expect(await claim(String(beyond?.purchaseId))).toMatchObject({ verdict: 'ending' })
    await database()
      .kysely.updateTable('access_key')
      .set({ status: 'paused' })
      .where('id', '=', keyId)
      .execute()
    expect(await buy(1n)).toBe(null)
  })

  it('pay a purchase that was set aside by what was bought in its place, and never beside it', async () => {
    const { id, buy, requireChannel, settle, end, readBooked, purchases } = await open()
    const aside = await buy(5n)
    if (aside === null) throw new Error('not bought')
    expect(await setAside(database(), { id: aside.purchaseId, call: null, at: noon })).toBe(true)
    expect(await setAside(database(), { id: aside.purchaseId, call: null, at: noon })).toBe(false)
    expect(await findUnanswered(database(), { channelId: id, cumulative: 5n, except: '' })).toBeUndefined()
    const instead = await buy(6n)
    expect(instead).toMatchObject({ verdict: 'signed', cumulative: 6n })
    expect(await readBooked()).toEqual({ available: DEPOSIT - 11n, held: 11n })
    expect(await settle(String(instead?.purchaseId), 6n)).toBe('settled')
    expect(await readBooked()).toEqual({ available: DEPOSIT - 6n, held: 0n })
    expect((await purchases()).map(({ state }) => state).toSorted()).toEqual(['failed', 'settled'])
    expect((await requireChannel()).signed).toBe(6n)
    expect(await end(6n)).toEqual({ verdict: 'closed', missing: 0n })
  })

  it('say so where more was claimed than was ever reserved', async () => {
    const { end, readBooked } = await open()
    expect(await end(30n)).toEqual({ verdict: 'closed_short', missing: 0n })
    expect(await readBooked()).toEqual({ available: DEPOSIT - 30n, held: 0n })
  })
})
