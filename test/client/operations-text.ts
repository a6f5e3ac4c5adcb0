/** The text of `src/client/operations.ts`, from the catalogue of a sandbox, which has every operation. */
import { execFileSync } from 'node:child_process'
import { buildCatalogue } from '../../src/kernel/catalogue.ts'
import { clientText, type DescribedApi } from '../../src/server/http/openapi/client-text.ts'
import { openApiDocument } from '../../src/server/http/openapi/document.ts'
import { tools } from '../../tools/index.ts'

const settings = { mode: 'sandbox', origin: 'https://bursar.example' } as const

const provider = {
  authorizationUrl: async () => '',
  identify: async () => Promise.reject(new Error('never asked')),
}

export function operationsText(): string {
  // Only mode and origin of the settings reach the document, and only the names of the providers.
  const document = openApiDocument(buildCatalogue(tools, { mode: 'sandbox', guests: true }), {
    settings: { ...settings } as Parameters<typeof openApiDocument>[1]['settings'],
    identityProviders: new Map([
      ['google', provider],
      ['apple', provider],
    ]),
  })
  const written = JSON.parse(JSON.stringify(document)) as DescribedApi
  const text = clientText(written, (operationId) => operationId.startsWith('webhooks.'))
  return execFileSync('node_modules/.bin/biome', ['format', '--stdin-file-path=src/client/operations.ts'], {
    input: text,
    encoding: 'utf8',
  })
}
