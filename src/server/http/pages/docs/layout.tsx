/** Frame of the documentation pages: header with search, contents, page, feedback. */
import { Document } from '../shell.tsx'
import { type Guide, guideGroups } from './guides.ts'
import type { Tag } from './operations.ts'

/** Everything that the pages show; read when the first of them is. */
export interface Site {
  readonly origin: string
  readonly isSandbox: boolean
  readonly guides: readonly Guide[]
  readonly tags: readonly Tag[]
}

/** @property href path of the page itself. @property isWide the page has a second column. */
export function Layout({
  site,
  title,
  href,
  isWide = false,
  children,
}: {
  readonly site: Site
  readonly title: string
  readonly href: string
  readonly isWide?: boolean
  readonly children?: unknown
}) {
  return (
    <Document title={title} style="docs" script="docs">
      <body>
        <a class="skip" href="#page">
          Skip to the page
        </a>
        <header class="bar">
          <a class="brand" href="/docs">
            Bursar <span>Docs</span>
          </a>
          {site.isSandbox ? <span class="chip sandbox">Sandbox</span> : ''}
          <search class="search">
            <label class="hidden" for="search">
              Search the documentation
            </label>
            <input
              id="search"
              type="search"
              role="combobox"
              placeholder="Search"
              autocomplete="off"
              spellcheck={false}
              aria-expanded="false"
              aria-controls="results"
              aria-autocomplete="list"
            />
            <kbd title="Focuses the search">/</kbd>
            <div id="results" role="listbox" aria-label="Search results" hidden />
            <p id="found" class="hidden" role="status" />
          </search>
        </header>
        <div class="frame">
          <details class="contents">
            <summary>Contents</summary>
            <Contents site={site} href={href} />
          </details>
          <div class="rail">
            <Contents site={site} href={href} />
          </div>
          <main id="page" class={isWide ? 'wide' : ''} tabindex={-1}>
            {children}
            <footer id="feedback" data-page={href.slice(1)}>
              Was this page helpful?{' '}
              <button type="button" value="up">
                Yes
              </button>{' '}
              <button type="button" value="down">
                No
              </button>{' '}
              <span role="status" />
            </footer>
          </main>
        </div>
      </body>
    </Document>
  )
}

function Contents({ site, href }: { readonly site: Site; readonly href: string }) {
  const link = (to: string, name: string) => (
    <li>
      <a href={to} aria-current={to === href ? 'page' : undefined}>
        {name}
      </a>
    </li>
  )
  return (
    <nav aria-label="Documentation">
      {guideGroups.map(([group]) => (
        <section>
          <p>{group}</p>
          <ul>
            {site.guides
              .filter((guide) => guide.group === group)
              .map(({ slug, name }) => link(`/docs/${slug}`, name))}
          </ul>
        </section>
      ))}
      <section>
        <p>Reference</p>
        <ul>
          {site.tags.map(({ name, slug, operations }) => {
            const page = `/docs/reference/${slug}`
            if (!href.startsWith(`${page}/`) && href !== page) return link(page, name)
            return (
              <li>
                <a href={page} aria-current={page === href ? 'page' : undefined}>
                  {name}
                </a>
                <ul>{operations.map((one) => link(one.href, one.id))}</ul>
              </li>
            )
          })}
          {link('/errors', 'Errors')}
          <li>
            <a href="/api/openapi.json">OpenAPI document</a>
          </li>
        </ul>
      </section>
    </nav>
  )
}
