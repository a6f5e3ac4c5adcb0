/** Routes of the documentation pages. `/errors/{code}` is the `type` of every problem. */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import type { Hono } from 'hono'
import { projectRoot } from '../../base/project-root.ts'
import { Failure, isFailureCode } from '../../failures/failure.ts'
import type { Env, HttpContext } from '../request.ts'
import { ApiPage, ErrorPage, ErrorsPage } from './docs.tsx'
import { docsStyle } from './docs-style.ts'
import { apiPageHeaders, pageHeaders } from './headers.ts'

const swagger = pathToFileURL(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))

/** Swagger UI files from its package; they change only with a release of the gateway. */
const bundled = [
  ['swagger-ui.css', 'text/css', new URL('swagger-ui.css', swagger)],
  ['swagger-ui.js', 'text/javascript', new URL('swagger-ui-bundle.js', swagger)],
] as const

export function routeDocs(app: Hono<Env>): void {
  app.get('/docs', (c) => page(c, <ApiPage />, apiPageHeaders))
  app.get('/errors', (c) => page(c, <ErrorsPage />, pageHeaders))
  app.get('/errors/:code', (c) => {
    const code = c.req.param('code')
    if (!isFailureCode(code))
      throw new Failure('not_found', 'No error has this code.', { hint: 'GET /errors lists them.' })
    return page(c, <ErrorPage code={code} />, pageHeaders)
  })
  app.get('/assets/docs.css', (c) => file(c, docsStyle, 'text/css', 'no-cache'))
  app.get('/assets/docs.js', async (c) =>
    file(
      c,
      await readFile(new URL('.build/src/http/pages/client/docs.js', projectRoot()), 'utf8'),
      'text/javascript',
      'no-cache',
    ),
  )
  for (const [name, type, source] of bundled)
    app.get(`/assets/${name}`, async (c) =>
      file(c, await readFile(source, 'utf8'), type, 'public, max-age=86400'),
    )
}

function page(
  c: HttpContext,
  body: { toString(): string | Promise<string> },
  headers: Record<string, string>,
) {
  return c.html(`<!doctype html>${body.toString()}`, 200, headers)
}

function file(c: HttpContext, text: string, type: string, caching: string): Response {
  return c.body(text, 200, { 'Content-Type': `${type}; charset=utf-8`, 'Cache-Control': caching })
}
