/** Script of the consent page: submits the selected scopes and limits as the decision. */
import { ask, readText } from './api.ts'
import { onSubmit } from './attempts.ts'
import { findForm } from './elements.ts'
import { readGrant, setUpPresets } from './grant.ts'
import { forgetPlan, takePlanOver } from './planned-agent.ts'
import { setUpSignOut } from './sign-out.ts'
import { setUpStepUp } from './step-up.ts'

setUpStepUp()
setUpSignOut()
setUpPresets()
takePlanOver(findForm('consent'))

onSubmit(findForm('consent'), (form) =>
  decide(form, {
    decision: 'approve',
    ...readGrant(form),
    keepEarlier: form.querySelector<HTMLInputElement>('input[name=keep-earlier]')?.checked === true,
  }),
)
onSubmit(findForm('refuse'), (form) => decide(form, { decision: 'deny' }))

async function decide(form: HTMLFormElement, decision: Record<string, unknown>): Promise<void> {
  const { account: accountId } = form.dataset
  const answer = await ask('POST', location.pathname, { ...decision, accountId })
  if (decision.decision === 'approve') forgetPlan()
  location.assign(readText(answer, 'redirectTo'))
}
