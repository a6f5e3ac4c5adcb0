/** A link to a page of a provider, in a tab of its own that learns nothing of this one. */
import type { ComponentChildren } from 'preact'

/** @param url from a provider: anything but a web address is not linked. */
export function OutsideLink({
  url,
  children,
}: {
  readonly url: string
  readonly children: ComponentChildren
}) {
  if (!/^https?:\/\//i.test(url)) return <span class="small faint">The provider’s page has no address.</span>
  return (
    <a class="btn" href={url} target="_blank" rel="noopener noreferrer">
      {children}
      <span class="hide"> (opens in a new tab)</span>
    </a>
  )
}
