/** What the pages share where an owner decides something. */

/** A page. @property script the module that makes it work. */
export function Shell({
  title,
  script,
  children,
}: {
  readonly title: string
  readonly script: string
  readonly children?: unknown
}) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} · Bursar`}</title>
        <link rel="stylesheet" href="/assets/sign-in.css" />
        <script src={`/assets/${script}.js`} type="module" />
      </head>
      <body data-page={script}>
        <main>
          <noscript>
            <p class="error">This page needs JavaScript: nothing on it works without.</p>
          </noscript>
          {children}
          <p id="status" role="status" aria-live="polite" />
        </main>
      </body>
    </html>
  )
}
