/** Attackers: they forge webhooks, and use keys of idempotency that other accounts have used. */
import type { Kind } from '../kind.ts'
import { formatCents, type Scene } from '../scene.ts'
import type { Seeded } from '../seeded.ts'
import { buildDepositEvent } from './bank.ts'

function forgeDeposit(scene: Scene, random: Seeded) {
  const id = scene.nextName('forged')
  const accountId = random.oneOf(scene.accounts).bankAccountId
  const amount = formatCents(100 + random.below(90_000))
  const body = buildDepositEvent({ id, accountId }, { state: 'payment_processed', amount, event: id })
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
    name: 'transfer with a stolen key of idempotency',
    weight: 1,
    run: async (scene, random) => {
      if (scene.transfers.length === 0) return false
      const victim = random.oneOf(scene.transfers)
      const { bearer } = random.oneOf(random.oneOf(scene.accounts).keys)
      const row = scene.newTransfer(1 + random.below(200))
      scene.transfers.push(row)
      row.answer = await scene.call(random, 'POST', '/api/wallets/transfer', {
        headers: { ...bearer, 'idempotency-key': victim.id },
        body: { destination: row.to, amount: formatCents(row.cents), token: 'USDC' },
        tries: 6,
      })
      const known = victim.answer?.body.transferId
      if (known !== undefined && row.answer?.status === 200 && row.answer.body.transferId === known)
        scene.found.push(`A key of idempotency is its account's own. – ${row.answer.text}`)
      return row.answer?.status === 200
    },
  },
]
