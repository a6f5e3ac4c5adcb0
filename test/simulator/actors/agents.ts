/** Agents with keys: they send money and buy, over REST and MCP, honestly and beyond what they may. */
import type { Kind } from '../kind.ts'
import { sendTransfer } from './owners.ts'

export const agents: readonly Kind[] = [
  {
    name: 'transfer by a key',
    weight: 16,
    run: async (scene, random) => {
      const { id, bearer: headers, isStopped } = random.oneOf(random.oneOf(scene.accounts).keys)
      const isSent = await sendTransfer(scene, random, { headers, cents: 1 + random.below(600) })
      if (isSent && isStopped) scene.found.push(`A stopped key spends nothing. – ${id} sent a transfer`)
      return isSent
    },
  },
]
