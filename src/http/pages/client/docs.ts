/**
 * Script of the documentation pages: renders the OpenAPI document with Swagger UI in the reader's colour scheme, and
 * submits page feedback.
 */
import { ask } from './api.ts'

declare global {
  /**
   * Loaded by the page before this script.
   * @see https://swagger.io/docs/open-source-tools/swagger-ui/usage/configuration/
   */
  const SwaggerUIBundle: ((options: Readonly<Record<string, unknown>>) => unknown) | undefined
}

const dark = matchMedia('(prefers-color-scheme: dark)')
const paint = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', paint)
paint()

const place = document.querySelector('#api')
if (place !== null && typeof SwaggerUIBundle !== 'undefined')
  SwaggerUIBundle({
    url: '/api/openapi.json',
    domNode: place,
    deepLinking: true,
    docExpansion: 'list',
    defaultModelsExpandDepth: -1,
    defaultModelRendering: 'example',
    // Disables the bundle's external validator, which would receive the document.
    validatorUrl: null,
    // Sends requests to the page's own origin, the only one its Content-Security-Policy allows.
    requestInterceptor: (request: { url: string }) => {
      const { pathname, search } = new URL(request.url, location.href)
      return { ...request, url: `${location.origin}${pathname}${search}` }
    },
  })

const feedback = document.querySelector<HTMLElement>('#feedback')
const status = feedback?.querySelector('[role=status]') ?? null
const buttons = [...(feedback?.querySelectorAll('button') ?? [])]

async function vote(button: HTMLButtonElement): Promise<void> {
  for (const one of buttons) one.disabled = true
  try {
    await ask('POST', '/api/docs/feedback', { page: feedback?.dataset.page ?? '', vote: button.value })
    say('Thank you.')
  } catch (error) {
    for (const one of buttons) one.disabled = false
    say(error instanceof Error ? error.message : 'The feedback could not be sent.')
  }
}

function say(text: string): void {
  if (status !== null) status.textContent = text
}

for (const button of buttons) button.addEventListener('click', () => void vote(button))
