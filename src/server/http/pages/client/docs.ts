/** Script of the documentation pages: search, copying, trying requests, and feedback. */
import { ask } from './api.ts'
import { startSearch } from './docs-search.ts'
import { startTrying } from './docs-try.ts'

startSearch()
startTrying()

for (const pre of document.querySelectorAll('main pre')) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy'
  button.textContent = 'Copy'
  button.addEventListener('click', () => void copy(pre.textContent ?? '', button))
  const box = document.createElement('div')
  box.className = 'code'
  pre.replaceWith(box)
  box.append(pre, button)
}

async function copy(text: string, button: HTMLButtonElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    button.textContent = 'Copied'
  } catch {
    button.textContent = 'Select the text and copy it'
  }
  setTimeout(() => {
    button.textContent = 'Copy'
  }, 2_000)
}

// The chosen language stays for the next operation.
const languages = [...document.querySelectorAll<HTMLInputElement>('input[name=language]')]
for (const one of languages) {
  if (one.value === localStorage.getItem('language')) one.checked = true
  one.addEventListener('change', () => localStorage.setItem('language', one.value))
}

const feedback = document.querySelector<HTMLElement>('#feedback')
const status = feedback?.querySelector('[role=status]') ?? null
const buttons = [...(feedback?.querySelectorAll('button') ?? [])]

async function vote(button: HTMLButtonElement): Promise<void> {
  for (const one of buttons) one.disabled = true
  try {
    await ask('POST', '/api/docs/feedback', { page: feedback?.dataset.page ?? '', vote: button.value })
    say('Thank you.')
  } catch (error) {
    for (const one of buttons) one.disabled = false
    say(error instanceof Error ? error.message : 'The feedback could not be sent.')
  }
}

function say(text: string): void {
  if (status !== null) status.textContent = text
}

for (const button of buttons) button.addEventListener('click', () => void vote(button))
