/** Document head and layout shared by all pages. */

/** @property style stylesheet name. @property script module name. @property before elements that must precede both. */
export function Document({
  title,
  style,
  script,
  before,
  children,
}: {
  readonly title: string
  readonly style: string
  readonly script: string
  readonly before?: unknown
  readonly children?: unknown
}) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} · Bursar`}</title>
        {before}
        <link rel="stylesheet" href={`/assets/${style}.css`} />
        <script src={`/assets/${script}.js`} type="module" />
      </head>
      {children}
    </html>
  )
}

/**
 * Layout of a page that requires its script. @property page variant for scripts that serve several pages.
 * @property news initial status text.
 */
export function Shell({
  title,
  script,
  page = script,
  provider,
  before,
  news = '',
  children,
}: {
  readonly title: string
  readonly script: string
  readonly page?: string
  readonly provider?: string | undefined
  readonly before?: unknown
  readonly news?: string
  readonly children?: unknown
}) {
  return (
    <Document title={title} style="sign-in" script={script} before={before}>
      <body data-page={page} data-provider={provider}>
        <main>
          <noscript>
            <p class="error">This page requires JavaScript.</p>
          </noscript>
          {children}
          <p id="status" role="status" aria-live="polite" data-kind={news === '' ? undefined : 'error'}>
            {news}
          </p>
        </main>
      </body>
    </Document>
  )
}
