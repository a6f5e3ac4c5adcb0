import { expect, it } from 'vitest'
import { openAlarms } from '../../../src/books/alarms/alarms.ts'
import { trialBalance } from '../../../src/books/ledger/trial-balance.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { createSnapshotRates } from '../../../src/providers/rates/sandbox.ts'
import { decideDepositReview, listDepositReviews } from '../../../src/rails/banking/deposit-reviews.ts'
import { onBothEngines } from '../../engines.ts'
import { dataKey, listOwned, newOwner, noon } from '../cards/scene.ts'
import { applyDeposit, open, wallet } from './scene.ts'

const SUSPICIOUS = `0x${'1'.repeat(36)}8888`
const SANCTIONED = `0x${'1'.repeat(36)}9999`

onBothEngines('deposits that AML stops', (database) => {
  const newAccount = async (destination: typeof wallet | null = null) => {
    const owner = await newOwner(database(), {})
    return { owner, account: await open(database(), owner, { destination }) }
  }
  const readReviews = async (owner: string, status: 'open' | 'blocked' | 'released' = 'open') => {
    const page = { limit: 100, after: null }
    const all = await listDepositReviews({ database: database(), settings: { dataKey } }, { status, page })
    return all.filter(({ accountId }) => accountId === owner)
  }
  const minted: unknown[] = []
  const decide = async (id: string, status: 'released' | 'blocked', decidedBy?: string) => {
    const table = await createSnapshotRates().latest(noon)
    const by = decidedBy ?? (await newOwner(database(), {}))
    return database().transaction((connection) =>
      decideDepositReview(
        {
          database: connection,
          log: silentLog,
          oweMint: async (_database, accountId, mint) => minted.push({ accountId, ...mint }),
        },
        { id, decidedBy: by, status, reason: 'Shown.', table, at: noon },
      ),
    )
  }
  const paidIn = { amount: '12.50', sender: 'Lazarus Group' }

  it('are not credited until an administrator releases them, and then once', async () => {
    minted.length = 0
    const { owner, account } = await newAccount(wallet)
    for (const state of ['funds_received', 'payment_processed', 'payment_processed'])
      expect(await applyDeposit(database(), account, state, paidIn)).toBeNull()
    expect(await listOwned(database(), owner)).toEqual([])
    const [review, ...others] = await readReviews(owner)
    expect(others).toEqual([])
    expect(review).toMatchObject({ sender: 'Lazarus Group', lists: ['sender_name'], status: 'open' })
    await expect(decide(review?.id ?? '', 'released', owner)).rejects.toMatchObject({ code: 'conflict' })
    expect(await decide(review?.id ?? '', 'released')).toBe(true)
    await expect(decide(review?.id ?? '', 'released')).rejects.toMatchObject({ code: 'conflict' })
    expect(await listOwned(database(), owner)).toEqual(['USDC 12.5 + 0'])
    expect(minted).toEqual([{ accountId: owner, token: 'USDC', to: wallet.address, units: 12_500_000n }])
    await applyDeposit(database(), account, 'payment_processed', paidIn)
    expect(await listOwned(database(), owner)).toEqual(['USDC 12.5 + 0'])
    await applyDeposit(database(), account, 'refunded', paidIn)
    // The refund is a debt in dollars, which holds the tokens that pay it.
    expect(await listOwned(database(), owner)).toEqual(['USDC 0 + 12.5'])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('stay away when an administrator blocks them', async () => {
    const { owner, account } = await newAccount()
    await applyDeposit(database(), account, 'payment_processed', { ...paidIn, sender: SUSPICIOUS })
    const [review] = await readReviews(owner)
    await decide(review?.id ?? '', 'blocked')
    await applyDeposit(database(), account, 'payment_processed', { ...paidIn, sender: SUSPICIOUS })
    expect(await listOwned(database(), owner)).toEqual([])
  })

  it('deposits from a blocked address are never credited, and wait for no one', async () => {
    const { owner, account } = await newAccount()
    await applyDeposit(database(), account, 'payment_processed', { ...paidIn, sender: SANCTIONED })
    const [review] = await readReviews(owner, 'blocked')
    expect(review).toMatchObject({ decidedBy: null, sender: SANCTIONED })
    await expect(decide(review?.id ?? '', 'released')).rejects.toMatchObject({ code: 'conflict' })
    expect(await listOwned(database(), owner)).toEqual([])
  })

  it('deposits that the bank takes back while they are held cannot be released, and cost the owner nothing', async () => {
    const { owner, account } = await newAccount()
    await applyDeposit(database(), account, 'payment_processed', paidIn)
    await applyDeposit(database(), account, 'refunded', paidIn)
    const [review] = await readReviews(owner)
    await expect(decide(review?.id ?? '', 'released')).rejects.toMatchObject({ code: 'conflict' })
    expect(await listOwned(database(), owner)).toEqual([])
    expect((await trialBalance(database())).balanced).toBe(true)
  })

  it('leave the sender’s name in no other place', async () => {
    const { account } = await newAccount()
    await applyDeposit(database(), account, 'payment_processed', { ...paidIn, customer: null })
    await applyDeposit(database(), account, 'payment_processed', { ...paidIn, amount: '9' }).catch(() => null)
    expect(
      JSON.stringify(await openAlarms(database()), (_, value) =>
        typeof value === 'bigint' ? String(value) : value,
      ),
    ).not.toContain('Lazarus')
  })

  it('are none when the sender is clear or not named', async () => {
    for (const sender of [null, 'Ada Lovelace', `0x${'1'.repeat(40)}`]) {
      const { owner, account } = await newAccount()
      await applyDeposit(database(), account, 'payment_processed', { ...paidIn, sender })
      expect(await listOwned(database(), owner)).toEqual(['USD 12.5 + 0'])
    }
  })
})
