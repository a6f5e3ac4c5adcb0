/** Agents with keys: they send money over REST and MCP, and try on after they were stopped. */
import type { Kind } from '../kind.ts'
import { formatCents, items, type Key, type Scene, text } from '../scene.ts'
import type { Seeded } from '../seeded.ts'
import { sendTransfer } from './owners.ts'

const anyKey = ({ accounts }: Scene, random: Seeded): Key => random.oneOf(random.oneOf(accounts).keys)

function judge(scene: Scene, { id, isStopped }: Pick<Key, 'id' | 'isStopped'>, isSent: boolean): boolean {
  if (isSent && isStopped) scene.found.push(`A stopped key spends nothing. – ${id} sent a transfer`)
  return isSent
}

export const agents: readonly Kind[] = [
  {
    name: 'transfer by a key',
    weight: 12,
    run: async (scene, random) => {
      const key = { ...anyKey(scene, random) }
      const cents = 1 + random.below(600)
      return judge(scene, key, await sendTransfer(scene, random, { headers: key.bearer, cents }))
    },
  },
  {
    name: 'transfer over MCP',
    weight: 5,
    run: async (scene, random) => {
      const key = { ...anyKey(scene, random) }
      const row = scene.newTransfer(1 + random.below(600))
      scene.transfers.push(row)
      const { id, to } = row
      row.users.push(key.bearer.authorization)
      const amount = formatCents(row.cents)
      const params = {
        name: 'wallets_transfer',
        arguments: { destination: to, amount, token: 'USDC', idempotency_key: id },
      }
      row.answer = await scene.call(random, 'POST', '/mcp', {
        headers: { ...key.bearer, accept: 'application/json, text/event-stream' },
        body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
        isOpen: (answer) => /settlement_pending|idempotency_in_progress|"retry":true/.test(answer.text),
        tries: 12,
      })
      const isSent = row.answer?.status === 200 && /transferId/.test(row.answer.text)
      return judge(scene, key, isSent && !/"isError":true/.test(row.answer?.text ?? ''))
    },
  },
  {
    name: 'attempt after a refusal',
    weight: 2,
    // An agent whose amount was refused tries the same in parts, at three gateways at once.
    run: async (scene, random) => {
      const key = { ...anyKey(scene, random) }
      const part = 1 + random.below(400)
      const sent = await Promise.all(
        [part, part, part].map((cents) => sendTransfer(scene, random, { headers: key.bearer, cents })),
      )
      return judge(scene, key, sent.includes(true))
    },
  },
  {
    name: 'reads of what is left',
    weight: 2,
    run: async (scene, random) => {
      const { bearer: headers } = anyKey(scene, random)
      const answer = await scene.call(random, 'GET', '/api/wallets', { headers, tries: 3 })
      const balances = items(answer?.body.balances)
      for (const { available } of balances)
        if (typeof available === 'string' && text(available).startsWith('-'))
          scene.found.push(`No balance is below zero. – ${answer?.text}`)
      return answer?.status === 200
    },
  },
]
