/** Outsiders: they forge webhooks, take other people's ids and keys of idempotency, and present a payment twice. */
import type { Kind } from '../kind.ts'
import { formatCents, type Scene, strangersAddress } from '../scene.ts'
import type { Seeded } from '../seeded.ts'

function forgeDeposit(scene: Scene, random: Seeded) {
  const id = scene.nextName('forged')
  const body = {
    api_version: 'v0',
    event_id: id,
    event_category: 'virtual_account.activity',
    event_type: 'updated.status_transitioned',
    event_object_id: id,
    event_object_status: 'payment_processed',
    event_object: {
      virtual_account_id: random.oneOf(scene.accounts).bankAccountId,
      amount: formatCents(100 + random.below(90_000)),
    },
  }
  const signature = Buffer.from(id.padEnd(256, '.')).toString('base64')
  const headers = { 'x-webhook-signature': `t=${scene.world.scheduler.now},v0=${signature}` }
  return scene.call(random, 'POST', '/api/webhooks/bridge', { headers, body, tries: 2 })
}

export const attackers: readonly Kind[] = [
  {
    name: 'forged deposit',
    weight: 2,
    run: async (scene, random) => {
      const answer = await forgeDeposit(scene, random)
      if (answer?.status === 200) scene.found.push(`Nobody else speaks for the bank. – ${answer.text}`)
      return answer?.status === 401
    },
  },
  {
    name: "transfer from another person's session",
    weight: 1,
    // The key of one account, with a key of idempotency that another account has used.
    run: async (scene, random) => {
      if (scene.transfers.length === 0) return false
      const victim = random.oneOf(scene.transfers)
      const { bearer } = random.oneOf(random.oneOf(scene.accounts).keys)
      const id = scene.nextName('transfer')
      const to = strangersAddress(id)
      const cents = 1 + random.below(200)
      const row = { id, to, cents, answer: undefined as Awaited<ReturnType<Scene['call']>> }
      scene.transfers.push(row)
      row.answer = await scene.call(random, 'POST', '/api/wallets/transfer', {
        headers: { ...bearer, 'idempotency-key': victim.id },
        body: { destination: to, amount: formatCents(cents), token: 'USDC' },
        tries: 6,
      })
      const known = victim.answer?.body.transferId
      if (known !== undefined && row.answer?.status === 200 && row.answer.body.transferId === known)
        scene.found.push(`A key of idempotency is its account's own. – ${row.answer.text}`)
      return row.answer?.status === 200
    },
  },
]
