/** Pages of the sandbox's identity provider: plain HTML that works without scripts. */
import { html } from 'hono/html'

type Page = ReturnType<typeof html>

/** Sign-in form. @param application client id. @param trouble error of the last submission. */
export function signInPage({ application, trouble }: { application: string; trouble: string | null }): Page {
  return page(
    'Sign in',
    html`<p>Use any identity: <strong>${application}</strong> receives the name, and the same e-mail address is always the same person.</p>
      ${trouble === null ? '' : html`<p role="alert">${trouble}</p>`}
      <form method="post">
        <label>E-mail <input name="email" type="email" autocomplete="email" maxlength="254" required autofocus></label>
        <label>Name <input name="name" autocomplete="name" maxlength="100"></label>
        <button name="action" value="sign-in">Sign in</button>
        <button name="action" value="cancel" formnovalidate>Cancel</button>
      </form>`,
  )
}

export function signInErrorPage(trouble: string): Page {
  return page('Sign-in failed', html`<p role="alert">${trouble}</p>`)
}

function page(title: string, content: Page): Page {
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${title} · Sandbox identity provider</title>
    <style>
      :root { color-scheme: light dark }
      body { font: 1rem/1.5 system-ui, sans-serif; max-width: 24rem; margin: 10vh auto; padding: 0 1rem }
      h1 { font-size: 1.25rem }
      label { display: block; margin: 1rem 0 }
      input { display: block; box-sizing: border-box; width: 100%; font: inherit; padding: .5rem }
      button { font: inherit; padding: .5rem 1rem; margin-right: .5rem }
    </style>
  </head>
  <body>
    <main>
      <h1>Sandbox identity provider</h1>
      ${content}
    </main>
  </body>
</html>`
}
