/** Parts of an approval that the inbox and the page of one share. */
import type { Approval } from '../../client/operations.ts'
import { session } from '../data/account.ts'
import { findAgent, people } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { shortText } from '../words/plain-text.ts'
import { FirstTime } from './call.tsx'
import { Chip } from './marks.tsx'

/** The name of who asks; `An agent` until it is known. */
export function useAskerName({ agentId, personId }: Pick<Approval, 'agentId' | 'personId'>): string {
  const agent = loadedValue(useResource(findAgent(agentId)))
  const person = loadedValue(useResource(people))?.people.find(({ id }) => id === personId)
  if (personId !== null) return shortText(person?.displayName ?? 'A person')
  return agent === undefined ? 'An agent' : shortText(agent.name)
}

/** How far a request is that several people must agree to; null for one that needs a single yes. */
export function describeAgreement({ needed, agreed, people: who = [] }: Approval): string | null {
  if (needed === 1) return null
  const names = who.map(({ displayName }) => shortText(displayName)).join(', ')
  return `${agreed} of ${needed} agreed${names === '' ? '' : `: ${names}`}`
}

/** Why the person may not agree to a request; null if they may. */
export function useObstacle({ operation, personId, people: who = [] }: Approval): string | null {
  const you = loadedValue(useResource(session))
  if (you === undefined) return null
  if (personId === you.personId) return 'You asked for this payment: others agree to it. Then make it again.'
  if (you.role === 'viewer' || you.role === 'accountant') return 'Owners and approvers decide. You may read.'
  if (you.role === 'approver' && changes.has(operation)) return 'This is a change that only an owner makes.'
  if (who.some((one) => one.personId === you.personId)) return 'You agreed. It waits for the others.'
  return null
}

/** Changes that are made in the name of whoever approves them. */
const changes: ReadonlySet<string> = new Set([
  'agents.policy',
  'agents.resume',
  'cards.update',
  'schedules.resume',
])

/** Marks of a request: above the agent's limits, and a payee that it never paid, where the gateway said so. */
export function RequestMarks({ approval }: { readonly approval: Approval }) {
  const isNew = approval.violations.some(({ rule }) => rule === 'new_payee_cooldown')
  return (
    <>
      {isNew && <FirstTime />}
      {approval.violations.length > 0 && (
        <Chip kind="bad" icon="warning">
          Above its limits
        </Chip>
      )}
    </>
  )
}
