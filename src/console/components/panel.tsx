/** Frames of a page. */
import type { ComponentChildren } from 'preact'
import { useEffect, useId } from 'preact/hooks'
import { Link } from 'wouter-preact'

/** @property more link or button at the end of the head. @property kind `ask`: something waits for the person. */
export function Panel({
  title,
  more,
  foot,
  kind,
  children,
}: {
  readonly title?: ComponentChildren
  readonly more?: ComponentChildren
  readonly foot?: ComponentChildren
  readonly kind?: 'ask' | undefined
  readonly children?: ComponentChildren
}) {
  const id = useId()
  return (
    <section
      class={kind === undefined ? 'panel' : `panel panel--${kind}`}
      aria-labelledby={title ? id : undefined}
    >
      {title && (
        <div class="panel__head">
          <h2 id={id}>{title}</h2>
          {more}
        </div>
      )}
      {children}
      {foot && <div class="panel__foot">{foot}</div>}
    </section>
  )
}

/** Names the document after what it shows. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Bursar`
  }, [title])
}

/** Head of a page: its question in words, and at most one primary button. */
export function PageHead({
  title,
  children,
  actions,
}: {
  readonly title: string
  readonly children?: ComponentChildren
  readonly actions?: ComponentChildren
}) {
  useTitle(title)
  return (
    <div class="pagehead">
      <div class="pagehead__text">
        <h1 tabIndex={-1}>{title}</h1>
        {children && <p class="soft">{children}</p>}
      </div>
      {actions && <div class="pagehead__actions">{actions}</div>}
    </div>
  )
}

/** Two columns from 1100 pixels, one below. */
export function Columns({
  main,
  side,
}: {
  readonly main: ComponentChildren
  readonly side: ComponentChildren
}) {
  return (
    <div class="cols">
      <div class="stack stack--loose">{main}</div>
      <div class="stack stack--loose">{side}</div>
    </div>
  )
}

export function PanelLink({
  href,
  children,
}: {
  readonly href: string
  readonly children: ComponentChildren
}) {
  return <Link href={href}>{children}</Link>
}
