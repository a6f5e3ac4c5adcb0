/** Script of the connect page: shows an agent that asks to be registered, and submits the owner's decision. */
import { type Answer, ask, readText } from './api.ts'
import { attempt, onSubmit } from './attempts.ts'
import { findForm, show, tell, write } from './elements.ts'
import { readGrant, setUpPresets } from './grant.ts'
import { forgetPlan, takePlanOver } from './planned-agent.ts'
import { requireSameAccount } from './session.ts'
import { setUpSignOut } from './sign-out.ts'
import { setUpStepUp } from './step-up.ts'

const code = location.pathname.split('/').at(-1) ?? ''
const registration = `/api/agents/registrations/${code}`
let request: Answer = {}

setUpStepUp()
setUpSignOut()
setUpPresets()
takePlanOver(findForm('approve'))
onSubmit(findForm('approve'), async (form) => {
  await requireSameAccount(form)
  const [name, publicKey] = [readText(request, 'name'), readText(request, 'publicKey')]
  await ask('POST', '/api/agents/keys', { name, publicKey, registration: code, ...readGrant(form) })
  forgetPlan()
  finish('approved')
})
onSubmit(findForm('reject'), async () => {
  await ask('POST', `${registration}/reject`, {})
  finish('rejected')
})
void attempt(async () => {
  request = await ask('GET', registration)
  write('user-code', readText(request, 'userCode'))
  write('agent', readText(request, 'name'))
  write('thumbprint', readText(request, 'keyId'))
  write('until', new Date(readText(request, 'expiresAt')).toLocaleString())
  const status = readText(request, 'status')
  if (status !== 'pending') return finish(status)
  show('request', true)
  tell('')
})

const outcomes: Readonly<Record<string, string>> = {
  approved: 'Approved. The agent is among your agent keys. You can close this page.',
  rejected: 'Rejected. The agent has no access. You can close this page.',
}

function finish(status: string): void {
  show('request', false)
  tell(outcomes[status] ?? 'This request has expired. The agent has no access.')
}
