/**
 * An owner's choices for an agent that is about to connect. Its own page, in another tab of this browser, takes them over
 * (`src/server/http/pages/client/planned-agent.ts`). Payees are not kept there.
 */
import type { PolicyDraft } from '../words/policy-draft.ts'
import { deriveScopes } from '../words/policy-draft.ts'

const ITEM = 'bursar.plannedAgent'

export function planAgent({
  accountId,
  name,
  draft,
}: {
  accountId: string
  name: string
  draft: PolicyDraft
}): void {
  const { perTransaction, daily, weekly, monthly, above } = draft
  const limits = { perTransaction, daily, weekly, monthly, above }
  const plan = { accountId, name, scopes: deriveScopes(draft.categories), limits, at: Date.now() }
  try {
    localStorage.setItem(ITEM, JSON.stringify(plan))
  } catch {
    // A browser that keeps nothing: the owner chooses again.
  }
}

export function forgetPlannedAgent(): void {
  try {
    localStorage.removeItem(ITEM)
  } catch {
    // Nothing was kept.
  }
}
