/** The width of the window as a signal, for what stands in another place on a narrow one. */
import { signal } from '@preact/signals'

/** Below this, a page has one column. The same bound as in the stylesheet. */
const narrow = matchMedia('(max-width: 68.74rem)')

export const isOneColumn = signal(narrow.matches)

narrow.addEventListener('change', ({ matches }) => {
  isOneColumn.value = matches
})
