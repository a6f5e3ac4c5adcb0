/** Attackers: they forge webhooks, and use keys of idempotency that other accounts have used. */
import type { Kind } from '../kind.ts'
import { formatCents, items, type Scene, text } from '../scene.ts'
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

/** An event that only the card network may tell, signed by somebody else. */
function forgeCardEvent(scene: Scene, random: Seeded) {
  const id = scene.nextName('forged')
  const cardId = random.oneOf(random.oneOf(scene.accounts).cardIds)
  const event = { token: `${id}:1`, type: 'CLEARING', amount: 100 + random.below(900), result: 'APPROVED' }
  const body = {
    event_type: 'card_transaction.updated',
    token: id,
    card_token: cardId,
    status: 'SETTLED',
    events: [event],
  }
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(scene.world.scheduler.now / 1_000)),
    'webhook-signature': `v1,${Buffer.from(id.padEnd(32, '.')).toString('base64')}`,
  }
  return scene.call(random, 'POST', '/api/webhooks/lithic', { headers, body, tries: 2 })
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
    name: 'forged card event',
    weight: 1,
    run: async (scene, random) => {
      const answer = await forgeCardEvent(scene, random)
      if (answer?.status === 200)
        scene.found.push(`Nobody else speaks for the card network. – ${answer.text}`)
      return answer?.status === 401
    },
  },
  {
    name: "approval of another's call",
    weight: 1,
    run: async (scene, random) => {
      const [victim, thief] = [random.oneOf(scene.accounts), random.oneOf(scene.keyedOwners)]
      const listed = await scene.call(random, 'GET', '/api/approvals', { headers: victim.bearer, tries: 3 })
      const waiting = items(listed?.body.approvals).filter(({ status }) => status === 'pending')
      if (waiting.length === 0) return false
      const answer = await scene.call(
        random,
        'POST',
        `/api/approvals/${text(random.oneOf(waiting).approvalId)}`,
        {
          headers: thief.bearer,
          body: { decision: 'approve' },
          tries: 4,
        },
      )
      if (answer?.status === 200)
        scene.found.push(`An owner decides on the own calls alone. – ${answer.text}`)
      return answer?.status === 404
    },
  },
  {
    name: 'transfer with a stolen key of idempotency',
    weight: 1,
    run: async (scene, random) => {
      if (scene.transfers.length === 0) return false
      const victim = random.oneOf(scene.transfers)
      const { bearer } = random.oneOf(random.oneOf(scene.accounts).keys)
      const isOwn = victim.users.includes(bearer.authorization)
      victim.users.push(bearer.authorization)
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
      if (!isOwn && row.answer?.body.code === 'idempotency_key_reused')
        scene.found.push(`A key of idempotency is its account's own. – ${row.answer.text}`)
      return row.answer?.status === 200
    },
  },
]
