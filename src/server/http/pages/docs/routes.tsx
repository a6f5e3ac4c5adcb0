/** Routes of the documentation. `/errors/{code}` is the `type` of every problem. */
import { readFile } from 'node:fs/promises'
import type { Hono } from 'hono'
import { routePath } from 'hono/route'
import { z } from 'zod'
import { lazy } from '../../../../core/base/lazy.ts'
import { projectRoot } from '../../../../core/base/project-root.ts'
import { Failure, failureCodes, isFailureCode } from '../../../../core/failures/failure.ts'
import type { CatalogueEntry } from '../../../../kernel/catalogue.ts'
import type { Services } from '../../../../kernel/context.ts'
import { sendPublic } from '../../compressed.ts'
import { type Env, type HttpContext, parseJsonBody } from '../../request.ts'
import { pageHeaders } from '../headers.ts'
import { ErrorPage, ErrorsPage } from './errors.tsx'
import { GuidePage, HomePage } from './guide.tsx'
import { guideGroups, llmsText, readGuides } from './guides.ts'
import type { Site } from './layout.tsx'
import { OperationPage, TagPage } from './operation.tsx'
import { readReference } from './operations.ts'
import { searchIndex } from './search-index.ts'
import { docsStyle } from './style.ts'

const HTML = 'text/html; charset=UTF-8'

const modules = ['docs', 'docs-search', 'docs-try'] as const

/** @param document the OpenAPI document that the reference shows. */
export function createSite({
  document,
  catalogue,
  services,
}: {
  readonly document: () => Record<string, unknown>
  readonly catalogue: readonly CatalogueEntry[]
  readonly services: Pick<Services, 'settings' | 'identityProviders'>
}): () => Site {
  const { origin, mode } = services.settings
  const deployment = { origin, isSandbox: mode === 'sandbox' }
  return lazy(
    (): Site => ({
      ...deployment,
      guides: readGuides(deployment),
      tags: readReference(document(), catalogue, services),
    }),
  )
}

/** Refuses feedback on a page that does not exist, before it is counted. Add it before the route that counts. */
export function refuseUnknownPages(app: Hono<Env>, site: () => Site): void {
  const fixed: ReadonlySet<string> = new Set([
    'docs',
    ...guideGroups.flatMap(([, guides]) => guides.map(([slug]) => `docs/${slug}`)),
    'errors',
    ...failureCodes.map((code) => `errors/${code}`),
  ])
  const reference = lazy(
    (): ReadonlySet<string> =>
      new Set(
        site().tags.flatMap(({ slug, operations }) => [
          `${REFERENCE}${slug}`,
          ...operations.map((operation) => `${REFERENCE}${slug}/${operation.slug}`),
        ]),
      ),
  )
  app.post('/api/docs/feedback', async (c, next) => {
    const { success, data } = z.object({ page: z.string() }).safeParse(parseJsonBody(c))
    if (success) {
      const page = data.page.replace(/^\//, '')
      // The reference takes a while to build, so that other pages do not wait for it.
      found(fixed.has(page) || (page.startsWith(REFERENCE) && reference().has(page)) || undefined)
    }
    await next()
  })
}

const REFERENCE = 'docs/reference/'

export function routeDocs(app: Hono<Env>, site: () => Site): void {
  const index = lazy(() => JSON.stringify(searchIndex(site().guides, site().tags)))
  const rendered = new Map<string, string>()
  /** Renders a page once: it is the same for all readers. @param name path of a page that exists. */
  const page = (c: HttpContext, name: string, body: () => { toString(): string | Promise<string> }) => {
    const text = rendered.get(name) ?? `<!doctype html>${body().toString()}`
    rendered.set(name, text)
    return sendPublic(c, { name, text, headers: { 'Content-Type': HTML, ...pageHeaders } })
  }
  app.get('/docs', (c) => page(c, '/docs', () => <HomePage site={site()} />))
  app.get('/docs/search.json', (c) => file(c, index(), 'application/json'))
  app.get('/docs/reference', (c) => c.redirect('/docs#reference', 302))
  app.get('/llms.txt', (c) => file(c, llmsText(site().guides, site().origin), 'text/plain'))
  app.get('/docs/:guide{[\\w-]+\\.md}', (c) => {
    const guide = found(site().guides.find(({ slug }) => `${slug}.md` === c.req.param('guide')))
    const headers = { 'Content-Type': 'text/markdown; charset=utf-8', 'Cache-Control': 'no-cache' }
    return sendPublic(c, { name: `/docs/${guide.slug}.md`, text: guide.text, headers })
  })
  app.get('/docs/:guide', (c) => {
    const guide = found(site().guides.find(({ slug }) => slug === c.req.param('guide')))
    return page(c, `/docs/${guide.slug}`, () => <GuidePage site={site()} guide={guide} />)
  })
  app.get('/docs/reference/:tag', (c) => {
    const tag = found(site().tags.find(({ slug }) => slug === c.req.param('tag')))
    return page(c, `/docs/reference/${tag.slug}`, () => <TagPage site={site()} tag={tag} />)
  })
  app.get('/docs/reference/:tag/:operation', (c) => {
    const tag = found(site().tags.find(({ slug }) => slug === c.req.param('tag')))
    const operation = found(tag.operations.find(({ slug }) => slug === c.req.param('operation')))
    const name = `/docs/reference/${tag.slug}/${operation.slug}`
    return page(c, name, () => <OperationPage site={site()} operation={operation} />)
  })
  app.get('/errors', (c) => page(c, '/errors', () => <ErrorsPage site={site()} />))
  app.get('/errors/:code', (c) => {
    const code = c.req.param('code')
    if (!isFailureCode(code))
      throw new Failure('not_found', 'No error has this code.', { hint: 'GET /errors lists them.' })
    return page(c, `/errors/${code}`, () => <ErrorPage site={site()} code={code} />)
  })
  app.get('/assets/docs.css', (c) => file(c, docsStyle, 'text/css'))
  for (const name of modules) {
    const source = new URL(`.build/pages/${name}.js`, projectRoot())
    app.get(`/assets/${name}.js`, async (c) => file(c, await readFile(source, 'utf8'), 'text/javascript'))
  }
}

/** @throws Failure `not_found`. */
function found<T>(page: T | undefined): T {
  if (page === undefined)
    throw new Failure('not_found', 'The documentation has no such page.', {
      hint: 'GET /docs lists the pages.',
    })
  return page
}

function file(c: HttpContext, text: string, type: string): Promise<Response> {
  const headers = { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'no-cache' }
  return sendPublic(c, { name: routePath(c), text, headers })
}
