/** Takes over the owner's choices for this agent, just made in the console in the same browser. */
import { isObject, readText } from './api.ts'
import { find, write } from './elements.ts'

/** As `src/console/data/planned-agent.ts` keeps it. */
const ITEM = 'bursar.plannedAgent'
/** Later, another agent may be asking. */
const LIFETIME_MS = 30 * 60 * 1000

/** Fields of the form by the limits of the plan. */
const fields = {
  perTransaction: 'per-transaction',
  daily: 'daily',
  weekly: 'weekly',
  monthly: 'monthly',
  above: 'approval-above',
} as const

/** Ticks and fills in the form, and says so. Scopes that the agent did not ask for stay away. */
export function takePlanOver(form: HTMLFormElement | null): void {
  const plan = readPlan()
  if (form === null || plan === null || readText(plan, 'accountId') !== form.dataset.account) return
  const { scopes, limits } = plan
  if (!Array.isArray(scopes) || !isObject(limits)) return
  for (const box of form.querySelectorAll<HTMLInputElement>('input[name=scope]'))
    box.checked = scopes.includes(box.value)
  for (const [name, id] of Object.entries(fields)) {
    const field = find(id, HTMLInputElement)
    if (field !== null) field.value = readText(limits, name)
  }
  for (const button of form.querySelectorAll('button[data-preset]'))
    button.setAttribute('aria-pressed', 'false')
  form.querySelector('#policy details')?.setAttribute('open', '')
  write('planned-name', readText(plan, 'name'))
  find('planned', HTMLElement)?.removeAttribute('hidden')
}

/** Forgets the plan: it was for one agent. */
export function forgetPlan(): void {
  try {
    localStorage.removeItem(ITEM)
  } catch {
    // Nothing was kept.
  }
}

function readPlan(): Record<string, unknown> | null {
  try {
    const plan: unknown = JSON.parse(localStorage.getItem(ITEM) ?? 'null')
    if (!isObject(plan) || typeof plan.at !== 'number') return null
    const age = Date.now() - plan.at
    return age >= 0 && age <= LIFETIME_MS ? plan : null
  } catch {
    return null
  }
}
