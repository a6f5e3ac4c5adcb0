/** The bank: deposits in their states, returned ones, and states that contradict what was paid out. */
import type { Kind } from '../kind.ts'
import { formatCents, type Scene } from '../scene.ts'
import type { Seeded } from '../seeded.ts'

interface Deposit {
  readonly id: string
  readonly accountId: string
}

const paidStates = ['funds_received', 'payment_submitted', 'payment_processed']

interface Told {
  readonly state: string
  readonly amount: string
  /** Id of the event. */
  readonly event: string
}

export function buildDepositEvent({ id, accountId }: Deposit, { state, amount, event }: Told) {
  return {
    api_version: 'v0',
    event_id: event,
    event_category: 'virtual_account.activity',
    event_type: 'updated.status_transitioned',
    event_object_id: id,
    event_object_status: state,
    event_object: { virtual_account_id: accountId, amount },
  }
}

function tellDeposit(
  scene: Scene,
  random: Seeded,
  deposit: Deposit,
  told: Omit<Told, 'event'> & { readonly event?: string },
) {
  const event = told.event ?? `${deposit.id}:${told.state}`
  return scene.tell(random, 'bridge', { id: event, message: buildDepositEvent(deposit, { ...told, event }) })
}

export const bank: readonly Kind[] = [
  {
    name: 'deposit',
    weight: 5,
    run: async (scene, random) => {
      const accountId = random.oneOf(scene.accounts).bankAccountId
      const deposit = { id: scene.nextName('deposit'), accountId, cents: 100 + random.below(4_000) }
      const isReturned = random.chance(0.2)
      // A bank that has named one amount and pays in another is stopped until a person has looked at it.
      const isContradicted = random.chance(0.2)
      for (const state of [...paidStates, ...(isReturned ? ['refunded'] : [])]) {
        const tell = (cents: number, event?: string) =>
          tellDeposit(scene, random, deposit, {
            state,
            amount: formatCents(cents),
            ...(event !== undefined && { event }),
          })
        if (state === 'payment_processed' && isContradicted)
          await tell(deposit.cents * 100, `${deposit.id}:contradicted`)
        const told = await tell(deposit.cents)
        if (told?.status !== 200 && !isContradicted) return false
      }
      scene.deposits.push({ ...deposit, isReturned, isContradicted })
      return true
    },
  },
  {
    name: 'contradicted deposit',
    weight: 2,
    run: async (scene, random) => {
      if (scene.deposits.length === 0) return false
      const deposit = random.oneOf(scene.deposits)
      const paid = formatCents(deposit.cents)
      await tellDeposit(scene, random, deposit, {
        state: random.oneOf(paidStates),
        amount: random.oneOf([`${paid}0000`, '0.00', `-${paid}`, '1e300', paid]),
        event: scene.nextName('lie'),
      })
      return true
    },
  },
]
