/** Parts of an approval that the inbox and the page of one share. */
import type { Approval } from '../../client/operations.ts'
import { agentById } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { shortText } from '../words/plain-text.ts'
import { FirstTime } from './call.tsx'
import { Chip } from './marks.tsx'

/** The agent's own name; `An agent` until it is known. */
export function useAgentName(agentId: string): string {
  const agent = loadedValue(useResource(agentById(agentId)))
  return agent === undefined ? 'An agent' : shortText(agent.name)
}

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
