/** Routes of the documentation. `/errors/{code}` is the `type` of every problem. */
import { readFile } from 'node:fs/promises'
import type { Hono } from 'hono'
import { compress } from 'hono/compress'
import { lazy } from '../../../base/lazy.ts'
import { projectRoot } from '../../../base/project-root.ts'
import { Failure, isFailureCode } from '../../../failures/failure.ts'
import type { CatalogueEntry } from '../../../kernel/catalogue.ts'
import type { Services } from '../../../kernel/context.ts'
import type { Env, HttpContext } from '../../request.ts'
import { pageHeaders } from '../headers.ts'
import { ErrorPage, ErrorsPage } from './errors.tsx'
import { GuidePage, HomePage } from './guide.tsx'
import { readGuides } from './guides.ts'
import type { Site } from './layout.tsx'
import { OperationPage, TagPage } from './operation.tsx'
import { readReference } from './operations.ts'
import { searchIndex } from './search-index.ts'
import { docsStyle } from './style.ts'

const modules = ['docs', 'docs-search', 'docs-try'] as const

/** @param document the OpenAPI document that the reference shows. */
export function routeDocs(
  app: Hono<Env>,
  {
    document,
    catalogue,
    services,
  }: {
    readonly document: () => Record<string, unknown>
    readonly catalogue: readonly CatalogueEntry[]
    readonly services: Pick<Services, 'settings' | 'identityProviders'>
  },
): void {
  const { origin, mode } = services.settings
  const deployment = { origin, isSandbox: mode === 'sandbox' }
  const site = lazy(
    (): Site => ({
      ...deployment,
      guides: readGuides(deployment),
      tags: readReference(document(), catalogue, services),
    }),
  )
  const index = lazy(() => JSON.stringify(searchIndex(site().guides, site().tags)))
  // Public, equal for all readers: compression tells nothing about a secret.
  app.use('/docs/*', compress())
  app.get('/docs', (c) => page(c, <HomePage site={site()} />))
  app.get('/docs/search.json', (c) => file(c, index(), 'application/json'))
  app.get('/docs/reference', (c) => c.redirect('/docs#reference', 302))
  app.get('/docs/:guide', (c) => {
    const guide = found(site().guides.find(({ slug }) => slug === c.req.param('guide')))
    return page(c, <GuidePage site={site()} guide={guide} />)
  })
  app.get('/docs/reference/:tag', (c) => {
    const tag = found(site().tags.find(({ slug }) => slug === c.req.param('tag')))
    return page(c, <TagPage site={site()} tag={tag} />)
  })
  app.get('/docs/reference/:tag/:operation', (c) => {
    const tag = found(site().tags.find(({ slug }) => slug === c.req.param('tag')))
    const operation = found(tag.operations.find(({ slug }) => slug === c.req.param('operation')))
    return page(c, <OperationPage site={site()} operation={operation} />)
  })
  app.get('/errors', (c) => page(c, <ErrorsPage site={site()} />))
  app.get('/errors/:code', (c) => {
    const code = c.req.param('code')
    if (!isFailureCode(code))
      throw new Failure('not_found', 'No error has this code.', { hint: 'GET /errors lists them.' })
    return page(c, <ErrorPage site={site()} code={code} />)
  })
  app.get('/assets/docs.css', (c) => file(c, docsStyle, 'text/css'))
  for (const name of modules) {
    const source = new URL(`.build/src/http/pages/client/${name}.js`, projectRoot())
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

function page(c: HttpContext, body: { toString(): string | Promise<string> }) {
  return c.html(`<!doctype html>${body.toString()}`, 200, pageHeaders)
}

function file(c: HttpContext, text: string, type: string): Response {
  return c.body(text, 200, { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': 'no-cache' })
}
