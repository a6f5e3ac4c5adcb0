/** The page's elements: found by id, shown and hidden, and the one line that tells how things go. */

/** An element that the page may lack. */
export function find<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind | null {
  const element = document.getElementById(id)
  return element instanceof kind ? element : null
}

/** A form that the page may lack. */
export function formOf(id: string): HTMLFormElement | null {
  return find(id, HTMLFormElement)
}

/** Shows an element, or hides it. */
export function show(id: string, isShown: boolean): void {
  find(id, HTMLElement)?.toggleAttribute('hidden', !isShown)
}

/** Whether an element is on the page and not hidden. */
export function isShown(id: string): boolean {
  return find(id, HTMLElement)?.hidden === false
}

/** Says how things go; screen readers say it too. */
export function tell(text: string, kind: 'news' | 'error' = 'news'): void {
  const status = find('status', HTMLElement)
  if (status === null) return
  status.dataset.kind = kind
  status.textContent = text
  status.scrollIntoView({ block: 'nearest' })
}

/** What a form's field holds. */
export function fieldOf(form: HTMLFormElement, name: string): string {
  const value = new FormData(form).get(name)
  return typeof value === 'string' ? value.trim() : ''
}

/** Puts the focus on the heading of what is shown, for whoever cannot see that it changed. */
export function focusHeading(): void {
  const headings = [...document.querySelectorAll('h1')]
  headings.find((heading) => heading.checkVisibility())?.focus()
}
