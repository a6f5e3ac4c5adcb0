/**
 * Views that hosts show beside a tool's answer: one HTML document each, with its script and style inside, and without
 * any network. Hosts that show none ignore them.
 * @see https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx
 */
import { readFile } from 'node:fs/promises'
import { projectRoot } from '../src/core/base/project-root.ts'

const titles = { approval: 'Approval', budget: 'Budget', receipt: 'Receipt' } as const
type View = keyof typeof titles

const viewByTool: Readonly<Record<string, View>> = {
  approvals_request: 'approval',
  approvals_get: 'approval',
  approvals_withdraw: 'approval',
  context: 'budget',
  wallets_transfer: 'receipt',
  purchases_buy: 'receipt',
}

const buildUri = (view: View) => `ui://bursar/${view}`

/** The metadata that names a tool's view in tools/list. @param name in MCP, such as `wallets_transfer` */
export function viewMeta(name: string): {
  readonly _meta?: { readonly ui: { readonly resourceUri: string } }
} {
  const view = viewByTool[name]
  return view === undefined ? {} : { _meta: { ui: { resourceUri: buildUri(view) } } }
}

const MIME_TYPE = 'text/html;profile=mcp-app'

const built = new URL('.build/apps/', projectRoot())

/**
 * Reads a view. @param origin of the gateway's pages, the only ones that it opens
 * @returns null for an address of no view
 */
export async function readView(uri: string, origin: string) {
  const view = (Object.keys(titles) as View[]).find((one) => buildUri(one) === uri)
  if (view === undefined) return null
  const [script, style] = await Promise.all(
    ['main.js', 'apps.css'].map((name) => readFile(new URL(name, built), 'utf8')),
  )
  const text = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${titles[view]}</title><style>${style}</style></head><body data-view="${view}" data-origin="${new URL(origin).origin}"><script>${script}</script></body></html>`
  return { uri, mimeType: MIME_TYPE, text, _meta: { ui: { prefersBorder: false } } }
}
