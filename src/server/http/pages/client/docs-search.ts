/** Search over the guides, operations and error codes. The index is loaded when the field gets focus. */
import { isObject, readText } from './api.ts'

interface Entry {
  readonly title: string
  readonly about: string
  readonly href: string
  /** Lower case: title, then everything. */
  readonly name: string
  readonly all: string
}

const MAX_RESULTS = 12

export function startSearch(): void {
  const field = document.querySelector<HTMLInputElement>('#search')
  const list = document.querySelector<HTMLElement>('#results')
  const count = document.querySelector<HTMLElement>('#found')
  if (field === null || list === null || count === null) return
  let loading: Promise<readonly Entry[]> | null = null
  let active = -1

  /** A failed load is tried again by the next key. */
  const load = () => {
    loading ??= loadIndex().catch((error: unknown) => {
      loading = null
      throw error
    })
    return loading
  }
  const options = () => [...list.querySelectorAll<HTMLElement>('[role=option]')]
  const close = () => {
    list.hidden = true
    active = -1
    field.setAttribute('aria-expanded', 'false')
    field.removeAttribute('aria-activedescendant')
  }
  const mark = (index: number) => {
    const all = options()
    active = all.length === 0 ? -1 : (index + all.length) % all.length
    for (const [at, option] of all.entries()) option.setAttribute('aria-selected', String(at === active))
    const chosen = all[active]
    if (chosen === undefined) return
    field.setAttribute('aria-activedescendant', chosen.id)
    chosen.scrollIntoView({ block: 'nearest' })
  }
  const show = async () => {
    const words = splitWords(field.value)
    if (words.length === 0) return close()
    const index = await load().catch(() => null)
    // The text changed while the index was loading: the later call shows its results.
    if (words.join(' ') !== splitWords(field.value).join(' ')) return
    const results = index === null ? [] : search(index, words)
    list.replaceChildren(...results.map(createOption))
    if (results.length === 0) {
      const none = document.createElement('div')
      none.className = 'none'
      none.textContent =
        index === null ? 'The search could not be loaded. Type again to retry.' : 'Nothing found.'
      list.append(none)
    }
    count.textContent = results.length === 1 ? '1 result' : `${results.length} results`
    list.hidden = false
    field.setAttribute('aria-expanded', 'true')
    mark(0)
  }

  field.addEventListener('focus', () => void load().catch(() => {}))
  field.addEventListener('input', () => void show())
  field.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') mark(active + 1)
    else if (event.key === 'ArrowUp') mark(active - 1)
    else if (event.key === 'Enter') options()[active]?.querySelector('a')?.click()
    else if (event.key === 'Escape') close()
    else return
    event.preventDefault()
  })
  // The keyboard stays in the field, which names the marked result; a link that was pressed is followed first.
  document.addEventListener('click', (event) => {
    if (event.target instanceof Node && !list.contains(event.target) && event.target !== field) close()
  })
  list.addEventListener('click', () => setTimeout(close))
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof HTMLElement && event.target.matches('input, textarea, select')
    if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    field.focus()
  })
}

function splitWords(text: string): readonly string[] {
  return text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
}

async function loadIndex(): Promise<readonly Entry[]> {
  const response = await fetch('/docs/search.json')
  const read: unknown = await response.json()
  if (!response.ok || !Array.isArray(read)) throw new Error('The search index could not be loaded.')
  return read.filter(isObject).map((one) => {
    const [title, about, href] = [readText(one, 'title'), readText(one, 'about'), readText(one, 'href')]
    const name = title.toLowerCase()
    return { title, about, href, name, all: `${name} ${about} ${readText(one, 'text')}`.toLowerCase() }
  })
}

/** Entries with all words, those with more of them in the title first. */
function search(index: readonly Entry[], words: readonly string[]): readonly Entry[] {
  const score = ({ name, about }: Entry) =>
    words.reduce((sum, word) => {
      if (name === word) return sum + 8
      if (name.split(/[^a-z0-9]+/).some((part) => part.startsWith(word))) return sum + 4
      return sum + (name.includes(word) ? 3 : about.toLowerCase().includes(word) ? 2 : 0)
    }, 0)
  return index
    .filter(({ all }) => words.every((word) => all.includes(word)))
    .map((entry) => ({ entry, value: score(entry) }))
    .sort((one, other) => other.value - one.value)
    .slice(0, MAX_RESULTS)
    .map(({ entry }) => entry)
}

function createOption({ title, about, href }: Entry, index: number): HTMLElement {
  const option = document.createElement('div')
  option.id = `result-${index}`
  option.setAttribute('role', 'option')
  const link = document.createElement('a')
  link.href = href
  link.tabIndex = -1
  const [name, where] = [document.createElement('strong'), document.createElement('span')]
  name.textContent = title
  where.textContent = about
  link.append(name, where)
  option.append(link)
  return option
}
