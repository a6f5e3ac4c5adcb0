/** Script of the approval page: shows the pending call and submits the owner's decision. */
import { type Answer, ask, isObject, textOf } from './api.ts'
import { attempt, onSubmit } from './attempts.ts'
import { find, formOf, show, tell } from './elements.ts'
import { setUpStepUp } from './step-up.ts'

const approval = `/api${location.pathname}`

setUpStepUp()
for (const decision of ['approve', 'reject'])
  onSubmit(formOf(decision), async () => present(await ask('POST', approval, { decision, ...noteOf() })))
void attempt(async () => present(await ask('GET', approval)))

function present(answer: Answer): void {
  write('operation', textOf(answer, 'operation'))
  write('agent', textOf(answer, 'agentId'))
  write('until', new Date(textOf(answer, 'expiresAt')).toLocaleString())
  showException(answer)
  write('call', JSON.stringify(answer.input, null, 2))
  const isOpen = textOf(answer, 'status') === 'pending'
  show('approve', isOpen)
  show('reject', isOpen)
  if (isOpen) tell('')
  else tell(outcomeOf(answer), isObject(answer.problem) ? 'error' : 'news')
}

function noteOf(): Record<string, string> {
  const note = find('note', HTMLInputElement)?.value.trim() ?? ''
  return note === '' ? {} : { note }
}

/** Shows the violated rules and the agent's reason, as text. */
function showException(answer: Answer): void {
  const reason = textOf(answer, 'reason')
  write('reason', reason)
  const list = find('violations', HTMLElement)
  const violations = Array.isArray(answer.violations) ? answer.violations.filter(isObject) : []
  show('exception', reason !== '' || violations.length > 0)
  list?.replaceChildren(
    ...violations.map((violation) => {
      const item = document.createElement('li')
      item.textContent = ruleOf(violation)
      return item
    }),
  )
}

/** Describes a violated rule, such as `daily budget: requested 20, limit 100, used 90`. */
function ruleOf(violation: Answer): string {
  const numbers = ['requested', 'limit', 'used'].flatMap((name) => {
    const value = textOf(violation, name)
    return value === '' ? [] : [`${name} ${value}`]
  })
  const rule = textOf(violation, 'rule').replaceAll('_', ' ')
  return numbers.length === 0 ? rule : `${rule}: ${numbers.join(', ')}`
}

function outcomeOf(answer: Answer): string {
  if (isObject(answer.problem)) return `The call failed: ${textOf(answer.problem, 'detail')}`
  switch (textOf(answer, 'status')) {
    case 'approved':
      return answer.answer === null
        ? 'Approved. The call is pending.'
        : 'Approved and completed. You can close this page.'
    case 'rejected':
      return 'Rejected. The call was not made. You can close this page.'
    case 'withdrawn':
      return 'The agent withdrew its request. The call was not made.'
    default:
      return 'This approval has expired. The call was not made.'
  }
}

function write(id: string, words: string): void {
  const element = find(id, HTMLElement)
  if (element !== null) element.textContent = words
}
