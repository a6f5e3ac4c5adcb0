/** Script of the device page: shows a program that asks to be signed in, and submits the person's decision. */
import { type Answer, ask, readText } from './api.ts'
import { attempt, onSubmit } from './attempts.ts'
import { findForm, show, tell, write } from './elements.ts'
import { requireSameAccount } from './session.ts'
import { setUpSignOut } from './sign-out.ts'
import { setUpStepUp } from './step-up.ts'

const code = location.pathname.split('/').at(-1) ?? ''
const signIn = `/api/auth/devices/${code}`
let request: Answer = {}

setUpStepUp()
setUpSignOut()
onSubmit(findForm('allow'), async (form) => {
  await requireSameAccount(form)
  await ask('POST', `${signIn}/allow`, {})
  finish('allowed')
})
onSubmit(findForm('reject'), async () => {
  await ask('POST', `${signIn}/reject`, {})
  finish('rejected')
})
void attempt(async () => {
  request = await ask('GET', signIn)
  write('user-code', readText(request, 'userCode'))
  write('program', readText(request, 'name'))
  write('address', readText(request, 'address'))
  write('since', new Date(readText(request, 'createdAt')).toLocaleString())
  write('until', new Date(readText(request, 'expiresAt')).toLocaleString())
  const status = readText(request, 'status')
  if (status !== 'pending') return finish(status)
  show('request', true)
  tell('')
})

const allowed = 'Allowed. The program is signed in, and its session is among yours. You can close this page.'
const outcomes: Readonly<Record<string, string>> = {
  allowed,
  collected: allowed,
  rejected: 'Rejected. The program is not signed in. You can close this page.',
}

function finish(status: string): void {
  show('request', false)
  tell(outcomes[status] ?? 'This request has expired. The program is not signed in.')
}
