import { expect, it } from 'vitest'
import { updateCard } from '../../../src/rails/cards/store.ts'
import { onBothEngines } from '../../engines.ts'
import { buildPurchase, cardDependencies, dataKey, decide, issueCard, newKey, newOwner } from './scene.ts'

onBothEngines('a card', (database) => {
  it('does not verify a card that could not pay: frozen, or by its key', async () => {
    const owner = await newOwner(database(), { USDC: '10' })
    const [active, paused, revoked, forbidden] = await Promise.all([
      newKey(database(), owner),
      newKey(database(), owner),
      newKey(database(), owner),
      newKey(database(), owner, { mcc: { deny: ['5411'] } }),
    ])
    const set = (keyId: string, status: 'paused' | 'revoked') =>
      database().kysely.updateTable('access_key').set({ status }).where('id', '=', keyId).execute()
    await set(paused, 'paused')
    await set(revoked, 'revoked')
    const verifyCard = async (keyId: string | null) =>
      (
        await decide(
          cardDependencies(database()),
          buildPurchase(await issueCard(database(), owner, { keyId }), '0'),
        )
      ).reason
    expect(await verifyCard(null)).toBe('approved')
    expect(await verifyCard(active)).toBe('approved')
    expect(await verifyCard(paused)).toBe('key_not_active')
    expect(await verifyCard(revoked)).toBe('key_not_active')
    expect(await verifyCard(forbidden)).toBe('policy_denied')
    const frozen = await issueCard(database(), owner)
    await updateCard(database(), { ...frozen, status: 'frozen' })
    expect(await decide(cardDependencies(database()), buildPurchase(frozen, '0'))).toMatchObject({
      reason: 'card_frozen',
    })
  })

  it('applies the holder’s per-spend limit by level', async () => {
    const owner = await newOwner(database(), { USDC: '100' })
    const card = await issueCard(database(), owner)
    const kycLimits = { none: 0n, basic: 20_000_000n, full: null }
    const verifyCard = async (amount: string, mode: 'sandbox' | 'production' = 'production') =>
      (
        await decide(
          {
            ...cardDependencies(database()),
            settings: {
              mode,
              kycLimits,
              dataKey,
              cardSpreadBps: 0,
              cardFloatMicros: 50_000_000n,
              cardPullMs: 2_500,
            },
          },
          buildPurchase(card, amount),
        )
      ).reason
    const set = (values: { guest?: boolean; kyc_level?: string }) =>
      database().kysely.updateTable('account').set(values).where('id', '=', owner).execute()
    expect(await verifyCard('0.01')).toBe('kyc_required')
    await set({ kyc_level: 'basic' })
    expect(await verifyCard('20.01')).toBe('kyc_required')
    expect(await verifyCard('20')).toBe('approved')
    await set({ kyc_level: 'full' })
    expect(await verifyCard('20.01')).toBe('approved')
    await set({ kyc_level: 'none', guest: true })
    expect(await verifyCard('0.01')).toBe('kyc_required')
    expect(await verifyCard('0.01', 'sandbox')).toBe('approved')
  })
})
