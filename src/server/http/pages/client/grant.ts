/** The scopes and spending limits that an owner chooses on a page. */
import { find, readField } from './elements.ts'

/** Policy categories of each spending scope. */
const categories: Readonly<Record<string, readonly string[]>> = {
  'wallets:transfer': ['transfer', 'gasless'],
  'banking:pay': ['payout'],
  'cards:write': ['card'],
  'investing:trade': ['invest'],
  'swaps:execute': ['swap'],
  'fx:pay': ['x402'],
  'purchases:pay': ['x402'],
}

/** Makes the presets fill in the limits, and shows which one holds. */
export function setUpPresets(): void {
  const buttons = [...document.querySelectorAll<HTMLButtonElement>('button[data-preset]')]
  const press = (pressed: HTMLButtonElement | null) => {
    for (const button of buttons) button.setAttribute('aria-pressed', String(button === pressed))
  }
  for (const button of buttons)
    button.addEventListener('click', () => {
      const {
        perTransaction = '',
        daily = '',
        weekly = '',
        monthly = '',
        approvalAbove = '',
      } = button.dataset
      fill('per-transaction', perTransaction)
      fill('daily', daily)
      fill('weekly', weekly)
      fill('monthly', monthly)
      fill('approval-above', approvalAbove)
      press(button)
    })
  const policy = find('policy', HTMLElement)
  policy?.addEventListener('input', () => press(null))
  // The browser cannot point at an invalid field that is folded away.
  policy?.addEventListener('invalid', () => policy.querySelector('details')?.setAttribute('open', ''), true)
}

/** The ticked scopes, and the policy if one of them can spend. */
export function readGrant(form: HTMLFormElement) {
  const scopes = [...form.querySelectorAll<HTMLInputElement>('input[name=scope]:checked')].map(
    ({ value }) => value,
  )
  const allow = [...new Set(scopes.flatMap((scope) => categories[scope] ?? []))]
  return { scopes, ...(allow.length > 0 ? { policy: readPolicy(form, allow) } : {}) }
}

function readPolicy(form: HTMLFormElement, allow: readonly string[]) {
  const { repeatCount, repeatSec } = find('policy', HTMLElement)?.dataset ?? {}
  const [weekly, monthly, above] = ['weekly', 'monthly', 'approval-above'].map((id) => readField(form, id))
  return {
    currency: 'USD',
    perTransaction: { max: readField(form, 'per-transaction') },
    dailyBudget: { max: readField(form, 'daily') },
    ...(weekly ? { weeklyBudget: { max: weekly } } : {}),
    ...(monthly ? { monthlyBudget: { max: monthly } } : {}),
    repeatLimit: { count: Number(repeatCount), perSec: Number(repeatSec) },
    categories: { allow },
    ...(above ? { approval: { above, ttlSec: 3600 } } : {}),
  }
}

function fill(id: string, value: string): void {
  const field = find(id, HTMLInputElement)
  if (field !== null) field.value = value
}
