/** The document of the owner's console. Everything that it shows comes from `src/console`, by the API. */

/** Client routes of the console. Each answers a direct visit. */
export const consolePaths = [
  '/',
  '/agents',
  '/agents/:id',
  '/approvals',
  '/approvals/:id',
  '/activity',
  '/cards',
  '/cards/:id',
  '/accounts',
  '/accounts/send',
  '/invest',
  '/contacts',
  '/schedules',
  '/people',
  '/people/join',
  '/messages',
  '/compliance',
  '/security',
  '/developers',
  '/operator',
] as const

/** @property chain name of the deployment's chain. */
export function ConsolePage({ mode, chain }: { readonly mode: string; readonly chain: string }) {
  return (
    <html lang="en" data-mode={mode} data-chain={chain}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover" />
        <meta name="color-scheme" content="light dark" />
        <title>Bursar</title>
        <link rel="icon" href="/favicon.ico" type="image/svg+xml" />
        <link rel="manifest" href="/manifest.webmanifest" />
        <script src="/assets/theme.js" />
        <link rel="stylesheet" href="/assets/console.css" />
        <script src="/assets/main.js" type="module" />
      </head>
      <body>
        <div id="app">
          <noscript>
            <p>This page requires JavaScript. The API works without it.</p>
          </noscript>
        </div>
      </body>
    </html>
  )
}

/** Mark of the browser tab and of the installed console; follows the reader's colour scheme. */
export const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 22 22"><style>.p{fill:#17181b}.c{fill:#fff}@media(prefers-color-scheme:dark){.p{fill:#f2f2f4}.c{fill:#111214}}</style><rect class="p" width="22" height="22" rx="6"/><path class="c" d="M5 7.25A2.25 2.25 0 0 1 7.25 5h4.5a3.2 3.2 0 0 1 2.2 5.5A3.4 3.4 0 0 1 12.4 17H7.25A2.25 2.25 0 0 1 5 14.75zm3 .75v1.75h3.4a.88.88 0 0 0 0-1.75zm0 4.25V14h4a.88.88 0 0 0 0-1.75z"/></svg>`

/** @see https://www.w3.org/TR/appmanifest/ */
export const manifest = JSON.stringify({
  name: 'Bursar',
  short_name: 'Bursar',
  description: 'Your money, your agents, and the stop button.',
  start_url: '/',
  display: 'standalone',
  background_color: '#f8f8f6',
  theme_color: '#f8f8f6',
  icons: [{ src: '/favicon.ico', sizes: 'any', type: 'image/svg+xml' }],
})
