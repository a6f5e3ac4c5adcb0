/** Script of the device page: shows a program that asks to be signed in, and submits the person's decision. */
import { type Answer, ask, textOf } from './api.ts'
import { attempt, onSubmit } from './attempts.ts'
import { formOf, show, tell, write } from './elements.ts'
import { requireSameAccount } from './session.ts'
import { setUpSignOut } from './sign-out.ts'
import { setUpStepUp } from './step-up.ts'

const code = location.pathname.split('/').at(-1) ?? ''
const signIn = `/api/auth/devices/${code}`
let request: Answer = {}

setUpStepUp()
setUpSignOut()
onSubmit(formOf('allow'), async (form) => {
  await requireSameAccount(form)
  await ask('POST', `${signIn}/allow`, {})
  finish('allowed')
})
onSubmit(formOf('reject'), async () => {
  await ask('POST', `${signIn}/reject`, {})
  finish('rejected')
})
void attempt(async () => {
  request = await ask('GET', signIn)
  write('user-code', textOf(request, 'userCode'))
  write('program', textOf(request, 'name'))
  write('address', textOf(request, 'address'))
  write('since', new Date(textOf(request, 'createdAt')).toLocaleString())
  write('until', new Date(textOf(request, 'expiresAt')).toLocaleString())
  const status = textOf(request, 'status')
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
