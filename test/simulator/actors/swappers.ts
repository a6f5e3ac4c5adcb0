/** Agents that swap what is in the wallet, and go on when gateways end in between. */
import type { Kind } from '../kind.ts'
import { formatCents, text } from '../scene.ts'

export const swappers: readonly Kind[] = [
  {
    name: 'swap',
    weight: 4,
    run: async (scene, random) => {
      const key = { ...random.oneOf(random.oneOf(scene.accounts).keys) }
      const [sell, buy] = random.oneOf([
        ['USDC', 'EURC'],
        ['EURC', 'USDC'],
      ] as const)
      const name = scene.nextName('swap')
      const call = {
        headers: { ...key.bearer, 'idempotency-key': name },
        body: {
          sell: { token: sell, amount: formatCents(1 + random.below(500)) },
          buy: { token: buy },
        },
      }
      const swap = () => scene.call(random, 'POST', '/api/swaps/orders', call)
      const [answer, twin] = await Promise.all([swap(), random.chance(0.3) ? swap() : undefined])
      if (answer?.status === 200 && twin?.status === 200 && answer.body.swapId !== twin.body.swapId)
        scene.found.push(`${name}: two swaps for one idempotency key: ${answer.text} and ${twin.text}`)
      if (answer?.status === 200 && key.isStopped)
        scene.found.push(`A stopped key spends nothing. – ${key.id} made ${text(answer.body.swapId)}`)
      return answer?.status === 200
    },
  },
]
