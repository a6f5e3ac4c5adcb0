/** Finds, shows and hides page elements, and sets the status line. */

/** Returns the element, or null if the page has none. */
export function find<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind | null {
  const element = document.getElementById(id)
  return element instanceof kind ? element : null
}

export function findForm(id: string): HTMLFormElement | null {
  return find(id, HTMLFormElement)
}

export function show(id: string, isShown: boolean): void {
  find(id, HTMLElement)?.toggleAttribute('hidden', !isShown)
}

/** Replaces the text of an element. */
export function write(id: string, words: string): void {
  const element = find(id, HTMLElement)
  if (element !== null) element.textContent = words
}

/** Sets the status line, which screen readers announce. */
export function tell(text: string, kind: 'news' | 'error' = 'news'): void {
  const status = find('status', HTMLElement)
  if (status === null) return
  status.dataset.kind = kind
  status.textContent = text
  status.scrollIntoView({ block: 'nearest' })
}

export function readField(form: HTMLFormElement, name: string): string {
  const value = new FormData(form).get(name)
  return typeof value === 'string' ? value.trim() : ''
}

/** Focuses the visible heading, so that screen readers announce the new view. */
export function focusHeading(): void {
  const headings = [...document.querySelectorAll('h1')]
  headings.find((heading) => heading.checkVisibility())?.focus()
}
