/** The script of the approval page: shows what is asked for, and tells the gateway what the owner says. */
import { type Answer, ask, isObject, textOf } from './api.ts'
import { attempt, onSubmit } from './attempts.ts'
import { find, formOf, show, tell } from './elements.ts'
import { setUpStepUp } from './step-up.ts'

/** The approval that this page is about. */
const approval = `/api${location.pathname}`

setUpStepUp()
for (const decision of ['approve', 'reject'])
  onSubmit(formOf(decision), async () => present(await ask('POST', approval, { decision })))
void attempt(async () => present(await ask('GET', approval)))

function present(answer: Answer): void {
  write('operation', textOf(answer, 'operation'))
  write('agent', textOf(answer, 'agentId'))
  write('until', new Date(textOf(answer, 'expiresAt')).toLocaleString())
  write('call', JSON.stringify(answer.input, null, 2))
  const isOpen = textOf(answer, 'status') === 'pending'
  show('approve', isOpen)
  show('reject', isOpen)
  if (isOpen) tell('')
  else tell(outcomeOf(answer), isObject(answer.problem) ? 'error' : 'news')
}

function outcomeOf(answer: Answer): string {
  if (isObject(answer.problem)) return `It could not be done: ${textOf(answer.problem, 'detail')}`
  switch (textOf(answer, 'status')) {
    case 'approved':
      return answer.answer === null
        ? 'Approved. It is under way.'
        : 'Approved and done. You can close this page.'
    case 'rejected':
      return 'Rejected: nothing was done. You can close this page.'
    default:
      return 'This was not decided in time: nothing was done.'
  }
}

function write(id: string, words: string): void {
  const element = find(id, HTMLElement)
  if (element !== null) element.textContent = words
}
