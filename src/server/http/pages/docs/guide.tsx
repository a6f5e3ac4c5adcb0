/** The home page and the guides. */
import { raw } from 'hono/html'
import type { Guide } from './guides.ts'
import { Layout, type Site } from './layout.tsx'

export function HomePage({ site }: { readonly site: Site }) {
  const start = site.guides.find(({ slug }) => slug === 'quick-start')
  return (
    <Layout site={site} title="Documentation" href="/docs">
      <h1>Let agents spend money, safely</h1>
      <p class="lead">
        Every key has a policy, every spend is reserved before money moves, and every denial names the rule.
        Start with six commands, then give an agent a key of its own.
      </p>
      <p class="actions">
        <a class="button primary" href="#quick-start">
          Quick start
        </a>
        <a class="button" href="/docs/agents">
          Connect an agent
        </a>
      </p>
      <section aria-labelledby="guides">
        <h2 id="guides">Guides</h2>
        <ul class="cards">
          {site.guides.map(({ slug, name, lead }) => (
            <li>
              <a href={`/docs/${slug}`}>{name}</a>
              <p>{firstSentence(lead)}</p>
            </li>
          ))}
        </ul>
      </section>
      {start === undefined ? (
        ''
      ) : (
        <section aria-labelledby="quick-start">
          <h2 id="quick-start">{start.title}</h2>
          {raw(start.html.replaceAll('<h2', '<h3').replaceAll('</h2>', '</h3>'))}
        </section>
      )}
      <section aria-labelledby="reference">
        <h2 id="reference">Reference</h2>
        <ul class="index">
          {site.tags.map(({ name, slug, description, operations }) => (
            <li>
              <a href={`/docs/reference/${slug}`}>{name}</a>
              <span>{description}</span>
              <small>{operations.length === 1 ? '1 operation' : `${operations.length} operations`}</small>
            </li>
          ))}
          <li>
            <a href="/errors">Errors</a>
            <span>Every code, its meaning and its remedy.</span>
          </li>
        </ul>
      </section>
    </Layout>
  )
}

export function GuidePage({ site, guide }: { readonly site: Site; readonly guide: Guide }) {
  const at = site.guides.indexOf(guide)
  const next = site.guides[at + 1]
  const headings = guide.sections.filter(({ anchor }) => anchor !== '')
  return (
    <Layout site={site} title={guide.title} href={`/docs/${guide.slug}`}>
      <p class="eyebrow">{guide.group}</p>
      <h1>{guide.title}</h1>
      {headings.length > 3 ? (
        <details class="onpage">
          <summary>On this page</summary>
          <ul>
            {headings.map(({ heading, anchor }) => (
              <li>
                <a href={`#${anchor}`}>{heading}</a>
              </li>
            ))}
          </ul>
        </details>
      ) : (
        ''
      )}
      <div class="text">{raw(guide.html)}</div>
      {next === undefined ? (
        ''
      ) : (
        <p class="next">
          Next: <a href={`/docs/${next.slug}`}>{next.name}</a>
        </p>
      )}
    </Layout>
  )
}

function firstSentence(text: string): string {
  return /^.*?\.(?= |$)/.exec(text)?.[0] ?? text
}
