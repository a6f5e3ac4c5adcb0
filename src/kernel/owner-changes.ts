/** Changes that a key may not make itself. It asks for one, and its owner makes it by approving: never the key. */
import { spendPolicy } from '../../policies/policy.ts'
import type { AccessKey } from '../core/base/principal.ts'
import { Failure } from '../core/failures/failure.ts'

type Input = Readonly<Record<string, unknown>>

/** @property tool operation that makes the change. @property toInput its input, from what the key asks for. */
interface OwnerChange {
  readonly tool: string
  readonly toInput: (asked: Input, key: Pick<AccessKey, 'id' | 'policyVersion'>) => Input
}

const changes: Readonly<Record<string, OwnerChange>> = {
  'cards.update': { tool: 'cards.update', toInput: (asked) => asked },
  // Asked by the gateway itself, of a key that made the same spend too often: never by the key.
  'agents.resume': { tool: 'agents.keys.update', toInput: (asked) => asked },
  // Asked by the gateway itself, of a schedule that failed too often.
  'schedules.resume': { tool: 'schedules.update', toInput: (asked) => asked },
  'agents.policy': {
    tool: 'agents.keys.update',
    // The policy that the key has now is the one that the owner compares it with.
    toInput: ({ policy, ...others }, { id, policyVersion: expectedVersion }) => {
      const [other] = Object.keys(others)
      const path = other === undefined ? 'input.policy' : `input.${other}`
      if (policy !== undefined && policy !== null && other === undefined)
        // With its defaults, as the owner compares it. One that is not valid is refused by the tool.
        return { id, policy: spendPolicy.safeParse(policy).data ?? policy, expectedVersion }
      const message = other === undefined ? 'is required' : 'is not a member: only `policy` is'
      throw new Failure('invalid_request', `${path}: ${message}`, { issues: [{ path, message }] })
    },
  },
}

export function findOwnerChange(operation: string): OwnerChange | undefined {
  return Object.hasOwn(changes, operation) ? changes[operation] : undefined
}
