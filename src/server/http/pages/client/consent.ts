/** Script of the consent page: submits the selected scopes and limits as the decision. */
import { ask, textOf } from './api.ts'
import { onSubmit } from './attempts.ts'
import { formOf } from './elements.ts'
import { grantOf, setUpPresets } from './grant.ts'
import { forgetPlan, takePlanOver } from './planned-agent.ts'
import { setUpSignOut } from './sign-out.ts'
import { setUpStepUp } from './step-up.ts'

setUpStepUp()
setUpSignOut()
setUpPresets()
takePlanOver(formOf('consent'))

onSubmit(formOf('consent'), (form) =>
  decide(form, {
    decision: 'approve',
    ...grantOf(form),
    keepEarlier: form.querySelector<HTMLInputElement>('input[name=keep-earlier]')?.checked === true,
  }),
)
onSubmit(formOf('refuse'), (form) => decide(form, { decision: 'deny' }))

async function decide(form: HTMLFormElement, decision: Record<string, unknown>): Promise<void> {
  const { account: accountId } = form.dataset
  const answer = await ask('POST', location.pathname, { ...decision, accountId })
  if (decision.decision === 'approve') forgetPlan()
  location.assign(textOf(answer, 'redirectTo'))
}
