/** Agents with keys: they send money and buy, over REST and MCP, honestly and beyond what they may. */
import type { Kind } from '../kind.ts'
import { sendTransfer } from './owners.ts'

export const agents: readonly Kind[] = [
  {
    name: 'transfer by a key',
    weight: 16,
    run: (scene, random) => {
      const { bearer: headers } = random.oneOf(random.oneOf(scene.accounts).keys)
      return sendTransfer(scene, random, { headers, cents: 1 + random.below(600) })
    },
  },
]
