/** Script of the consent page: submits the selected scopes and limits as the decision. */
import { ask, textOf } from './api.ts'
import { onSubmit } from './attempts.ts'
import { fieldOf, find, formOf } from './elements.ts'
import { setUpStepUp } from './step-up.ts'

/** Policy categories of each spending scope. */
const categories: Readonly<Record<string, readonly string[]>> = {
  'wallets:transfer': ['transfer', 'gasless'],
  'cards:write': ['card'],
  'investing:trade': ['invest'],
  'fx:pay': ['x402'],
  'purchases:pay': ['x402'],
}

setUpStepUp()

for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-preset]'))
  button.addEventListener('click', () => {
    const { perTransaction = '', daily = '', weekly = '', monthly = '', approvalAbove = '' } = button.dataset
    fill('per-transaction', perTransaction)
    fill('daily', daily)
    fill('weekly', weekly)
    fill('monthly', monthly)
    fill('approval-above', approvalAbove)
  })

onSubmit(formOf('consent'), async (form) => {
  const scopes = [...form.querySelectorAll<HTMLInputElement>('input[name=scope]:checked')].map(
    ({ value }) => value,
  )
  const allow = scopes.flatMap((scope) => categories[scope] ?? [])
  await decide(form, {
    decision: 'approve',
    scopes,
    ...(allow.length > 0 ? { policy: policyOf(form, allow) } : {}),
    keepEarlier: form.querySelector<HTMLInputElement>('input[name=keep-earlier]')?.checked === true,
  })
})
onSubmit(formOf('refuse'), (form) => decide(form, { decision: 'deny' }))

async function decide(form: HTMLFormElement, decision: Record<string, unknown>): Promise<void> {
  const { account: accountId } = form.dataset
  const answer = await ask('POST', location.pathname, { ...decision, accountId })
  location.assign(textOf(answer, 'redirectTo'))
}

function policyOf(form: HTMLFormElement, allow: readonly string[]) {
  const [weekly, monthly, above] = ['weekly', 'monthly', 'approval-above'].map((id) => fieldOf(form, id))
  return {
    currency: 'USD',
    perTransaction: { max: fieldOf(form, 'per-transaction') },
    dailyBudget: { max: fieldOf(form, 'daily') },
    ...(weekly ? { weeklyBudget: { max: weekly } } : {}),
    ...(monthly ? { monthlyBudget: { max: monthly } } : {}),
    categories: { allow },
    ...(above ? { approval: { above, ttlSec: 3600 } } : {}),
  }
}

function fill(id: string, value: string): void {
  const field = find(id, HTMLInputElement)
  if (field !== null) field.value = value
}
