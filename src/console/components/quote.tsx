/** Text of others, shown as such: attributed, isolated from the text around it, never as markup. */
import type { ComponentChildren } from 'preact'
import { plainText } from '../words/plain-text.ts'
import { Icon } from './icon.tsx'

/** @property by attribution. @property isOwn the reader's own words need no warning. */
export function Quote({
  by,
  children,
  isOwn = false,
}: {
  readonly by: ComponentChildren
  readonly children: string
  readonly isOwn?: boolean
}) {
  return (
    <figure class="quote">
      <figcaption class="quote__who">
        {!isOwn && <Icon name="warning" small />}
        {by}
      </figcaption>
      {/* Long text scrolls, and a keyboard must reach it. */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region needs focus (WCAG 2.1.1). */}
      <blockquote dir="auto" tabIndex={0}>
        {children}
      </blockquote>
    </figure>
  )
}

/** Text of others inside a line. `<bdi>` keeps its direction to itself, and nothing in it is unseen. */
export function Untrusted({ children }: { readonly children: string }) {
  return <bdi>{plainText(children)}</bdi>
}
