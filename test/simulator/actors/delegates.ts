/** Agents that share their budget with others, take it back, and some that claim more than they were given. */
import type { Kind } from '../kind.ts'
import { type Account, formatCents, type Key, type Scene, text } from '../scene.ts'
import type { Seeded } from '../seeded.ts'

/** Keys of an account, so that a history does not end with keys alone. */
const MAX_KEYS = 12
const HOUR_MS = 3_600_000

function chooseKey(scene: Scene, random: Seeded): { account: Account; key: Key } {
  const account = random.oneOf(scene.accounts)
  return { account, key: random.oneOf(account.keys) }
}

function buildGrant(scene: Scene, { cents, isEarmarked }: { cents: number; isEarmarked: boolean }) {
  const max = formatCents(cents)
  return {
    name: 'Simulated child',
    scopes: ['wallets:read', 'wallets:transfer', 'agents:delegate'],
    policy: {
      perTransaction: { max: formatCents(Math.min(cents, 300)) },
      dailyBudget: { max },
      ...(isEarmarked ? { totalBudget: { max } } : {}),
      categories: { allow: ['transfer'] },
    },
    expiresAt: new Date(scene.world.scheduler.now + 24 * HOUR_MS).toISOString(),
    bearer: true,
    earmark: isEarmarked,
  }
}

export const delegates: readonly Kind[] = [
  {
    name: 'delegation',
    weight: 4,
    run: async (scene, random) => {
      const { account, key } = chooseKey(scene, random)
      if (account.keys.length >= MAX_KEYS) return false
      const { isStopped } = key
      const cents = 1 + random.below(key.dailyCents)
      const answer = await scene.call(random, 'POST', '/api/agents/delegations', {
        headers: { ...key.bearer, 'idempotency-key': scene.nextName('delegation') },
        body: buildGrant(scene, { cents, isEarmarked: random.chance(0.4) }),
      })
      if (answer?.status !== 200) return false
      if (isStopped) scene.found.push(`A stopped key gives nothing to others. – ${key.id} delegated`)
      // A client that lost the first answer has no secret: the key is there, and nobody can use it.
      if (typeof answer.body.key !== 'string') return true
      account.keys.push({
        id: text(answer.body.agentId),
        bearer: { authorization: `Bearer ${answer.body.key}` },
        dailyCents: cents,
        above: [...key.above, key.id],
        isStopped: false,
      })
      return true
    },
  },
  {
    name: 'delegation taken back',
    weight: 1,
    run: async (scene, random) => {
      const { account, key: parent } = chooseKey(scene, random)
      const children = account.keys.filter(({ above }) => above.includes(parent.id))
      if (children.length === 0) return false
      const child = random.oneOf(children)
      const known = [...account.keys]
      const answer = await scene.call(random, 'DELETE', `/api/agents/delegations/${child.id}`, {
        headers: parent.bearer,
      })
      if (answer?.status !== 200) return false
      for (const one of known) if (one === child || one.above.includes(child.id)) one.isStopped = true
      return true
    },
  },
  {
    name: 'delegation beyond its parent',
    weight: 2,
    // A wider policy, a scope that the parent lacks, or a key that is not below it.
    run: async (scene, random) => {
      const { account, key } = chooseKey(scene, random)
      const grant = buildGrant(scene, { cents: key.dailyCents + 1, isEarmarked: false })
      const lie = random.below(3)
      const other = random.oneOf(account.keys)
      if (lie === 2 && (other.above.includes(key.id) || other === key)) return false
      const answer =
        lie === 2
          ? await scene.call(random, 'DELETE', `/api/agents/delegations/${other.id}`, { headers: key.bearer })
          : await scene.call(random, 'POST', '/api/agents/delegations', {
              headers: key.bearer,
              body:
                lie === 0
                  ? grant
                  : { ...buildGrant(scene, { cents: 1, isEarmarked: false }), scopes: ['banking:pay'] },
            })
      if (answer?.status === 200)
        scene.found.push(`Nothing is given that its giver has not. – ${key.id}: ${answer.text}`)
      return answer !== undefined
    },
  },
]
