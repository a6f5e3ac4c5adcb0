/** The card network: it authorizes, clears, reverses, returns, and sometimes clears without asking, or contradicts itself. */
import type { Kind } from '../kind.ts'
import type { Scene, Swipe } from '../scene.ts'
import type { Seeded } from '../seeded.ts'

function newSwipe(scene: Scene, random: Seeded): Swipe {
  const { cardIds } = random.oneOf([...scene.accounts, ...scene.keyedOwners])
  const cardId = random.oneOf(cardIds)
  return { token: scene.nextName('swipe'), cardId, cents: 50 + random.below(1_500), events: [] }
}

function add({ token, events }: Swipe, type: string, amount: number): void {
  events.push({ token: `${token}:${type}:${events.length}`, type, amount, result: 'APPROVED' })
}

function tellState(scene: Scene, random: Seeded, swipe: Swipe, status: string) {
  const { token, cardId, events } = swipe
  return scene.tell(random, 'lithic', {
    id: `${token}:${events.length}:${status}`,
    message: { event_type: 'card_transaction.updated', token, card_token: cardId, status, events },
  })
}

function take<Item>(list: Item[], random: Seeded): Item | undefined {
  return list.splice(random.below(list.length), 1)[0]
}

/** Ends everything that was authorized: shops let their authorizations expire. */
export async function expireSwipes(scene: Scene, random: Seeded): Promise<void> {
  for (const swipe of scene.swipes.splice(0)) {
    add(swipe, 'AUTHORIZATION_EXPIRY', -swipe.cents)
    await tellState(scene, random, swipe, 'EXPIRED')
  }
}

export const processor: readonly Kind[] = [
  {
    name: 'card authorization',
    weight: 12,
    run: async (scene, random) => {
      const swipe = newSwipe(scene, random)
      const answer = await scene.tell(random, 'lithic', {
        id: swipe.token,
        message: {
          event_type: 'card_authorization.approval_request',
          token: swipe.token,
          status: 'AUTHORIZATION',
          amount: swipe.cents,
          card: { token: swipe.cardId },
          merchant: { acceptor_id: 'SHOP', descriptor: 'Shop', mcc: '5411', country: 'USA' },
          pos: { entry_mode: { pan: 'ECOMMERCE' } },
        },
      })
      add(swipe, 'AUTHORIZATION', swipe.cents)
      if (answer?.text.includes('"APPROVED"') !== true) return false
      scene.swipes.push(swipe)
      return true
    },
  },
  {
    name: 'clearing',
    weight: 6,
    run: async (scene, random) => {
      const swipe = take(scene.swipes, random)
      if (swipe === undefined) return false
      const { cents } = swipe
      add(swipe, 'CLEARING', random.oneOf([cents, cents, Math.ceil(cents / 2), cents + 300]))
      await tellState(scene, random, swipe, 'SETTLED')
      if (random.chance(0.25)) {
        add(swipe, 'RETURN', -Math.ceil(cents / 3))
        await tellState(scene, random, swipe, 'SETTLED')
      }
      return true
    },
  },
  {
    name: 'clearing without an authorization',
    weight: 2,
    run: async (scene, random) => {
      const swipe = newSwipe(scene, random)
      add(swipe, 'CLEARING', swipe.cents)
      return (await tellState(scene, random, swipe, 'SETTLED')) !== undefined
    },
  },
  {
    name: 'reversal',
    weight: 4,
    run: async (scene, random) => {
      const swipe = take(scene.swipes, random)
      if (swipe === undefined) return false
      add(swipe, 'AUTHORIZATION_REVERSAL', -swipe.cents)
      return (await tellState(scene, random, swipe, 'VOIDED')) !== undefined
    },
  },
  {
    name: 'contradicted card transaction',
    weight: 2,
    run: async (scene, random) => {
      if (scene.swipes.length === 0) return false
      const swipe = random.oneOf(scene.swipes)
      const events = swipe.events
        .map((event) => ({
          ...event,
          amount: random.oneOf([event.amount, event.amount * 1_000, -event.amount]),
        }))
        .reverse()
      const { token, cardId } = swipe
      const message = {
        event_type: 'card_transaction.updated',
        token,
        card_token: random.oneOf([cardId, newSwipe(scene, random).cardId]),
        status: 'AUTHORIZATION',
        events,
      }
      await scene.tell(random, 'lithic', { id: scene.nextName('lie'), message })
      return true
    },
  },
]
