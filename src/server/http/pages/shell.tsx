/** Document head and layout shared by all pages. Colours and sizes are the console's tokens. */

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
  readonly script?: string | undefined
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
        <link rel="icon" href="/favicon.ico" type="image/svg+xml" />
        <script src="/assets/theme.js" />
        {before}
        <link rel="stylesheet" href="/assets/tokens.css" />
        <link rel="stylesheet" href={`/assets/${style}.css`} />
        {script !== undefined && <script src={`/assets/${script}.js`} type="module" />}
      </head>
      {children}
    </html>
  )
}

/**
 * Layout of a page. @property script absent: the page needs none. @property page variant for scripts that serve several pages.
 * @property news initial status text. @property isWide for pages on which much is chosen. @property wayOut for pages on which a request
 * may have ended: a link to the console. @property person who is signed in and may sign out here.
 *
 * Scripts submit the forms, and a form that the browser posts by itself ends on an error. Buttons that are shown before their script
 * runs are disabled until then.
 */
export function Shell({
  title,
  script,
  page = script,
  provider,
  before,
  news = '',
  isWide = false,
  wayOut = false,
  person,
  children,
}: {
  readonly title: string
  readonly script?: string
  readonly page?: string | undefined
  readonly provider?: string | undefined
  readonly before?: unknown
  readonly news?: string
  readonly isWide?: boolean
  readonly wayOut?: boolean
  readonly person?: string
  readonly children?: unknown
}) {
  return (
    <Document title={title} style="pages" script={script} before={before}>
      <body data-page={page} data-provider={provider} class={isWide ? 'wide' : undefined}>
        <div class="brandline">
          <Brand />
          Bursar
        </div>
        <main>
          {script !== undefined && (
            <noscript>
              <p class="error">This page requires JavaScript.</p>
            </noscript>
          )}
          {children}
          <p id="status" role="status" aria-live="polite" data-kind={news === '' ? undefined : 'error'}>
            {news}
          </p>
          {wayOut && (
            <p class="hint">
              <a href="/">Go to your account</a>
            </p>
          )}
          {person !== undefined && (
            <form id="sign-out" method="post">
              <button type="submit" disabled>
                Sign out of {person}
              </button>
            </form>
          )}
        </main>
      </body>
    </Document>
  )
}

export function Brand() {
  return (
    <svg class="brand" viewBox="0 0 22 22" aria-hidden="true">
      <rect class="brand__plate" width="22" height="22" rx="6" />
      <path
        class="brand__coin"
        d="M5 7.25A2.25 2.25 0 0 1 7.25 5h4.5a3.2 3.2 0 0 1 2.2 5.5A3.4 3.4 0 0 1 12.4 17H7.25A2.25 2.25 0 0 1 5 14.75zm3 .75v1.75h3.4a.88.88 0 0 0 0-1.75zm0 4.25V14h4a.88.88 0 0 0 0-1.75z"
      />
    </svg>
  )
}
