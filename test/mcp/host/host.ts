/** A host of MCP Apps in Chromium: it reads views by the client, and shows them under the policy that hosts apply. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { build } from 'esbuild'
import type { Browser, FrameLocator, Page } from 'playwright-core'
import { z } from 'zod'

/**
 * What hosts allow a view that asks for nothing.
 * @see https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx
 */
const policy =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; media-src 'self' data:; connect-src 'none'"

export interface Host {
  readonly page: Page
  /** Addresses of pages that views opened. */
  readonly opened: readonly string[]
  readonly complaints: readonly string[]
  /** Calls a tool, and shows its view. @param look changes what is shown */
  call(
    name: string,
    input: Record<string, unknown>,
    look?: { theme?: 'light' | 'dark'; opensPages?: boolean; result?: CallToolResult | null; width?: number },
  ): Promise<FrameLocator>
  close(): Promise<void>
}

const resource = z.object({ ui: z.object({ resourceUri: z.string() }) })

export async function openHost(browser: Browser, client: Client): Promise<Host> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('page.js', import.meta.url))],
    bundle: true,
    format: 'iife',
    write: false,
    logLevel: 'warning',
  })
  const script = outputFiles[0]?.text ?? ''
  let view = ''
  const server = createServer(({ url }, response) => {
    if (url === '/view')
      response.setHeader('content-security-policy', policy).setHeader('content-type', 'text/html').end(view)
    else if (url === '/host.js') response.setHeader('content-type', 'text/javascript').end(script)
    else
      response
        .setHeader('content-type', 'text/html')
        .end(
          '<!doctype html><html lang="en"><title>Host</title><style>body{margin:16px}iframe{width:100%;border:0}</style><body><main></main><script src="/host.js"></script></body></html>',
        )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const context = await browser.newContext({ baseURL: readAddress(server) })
  const page = await context.newPage()
  const [opened, complaints]: [string[], string[]] = [[], []]
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  await page.exposeFunction('openPage', (url: string) => void opened.push(url))
  await page.exposeFunction('callTool', ({ name, arguments: given }: Parameters<Client['callTool']>[0]) =>
    client.callTool({ name, arguments: given }),
  )
  const { tools } = await client.listTools()
  return {
    page,
    opened,
    complaints,
    async call(name, input, { theme = 'light', opensPages = true, result, width = 640 } = {}) {
      const { resourceUri } = resource.parse(tools.find((tool) => tool.name === name)?._meta).ui
      const { contents } = await client.readResource({ uri: resourceUri })
      const [content] = z
        .tuple([z.looseObject({ mimeType: z.literal('text/html;profile=mcp-app'), text: z.string() })])
        .parse(contents)
      view = content.text
      const answered = result === undefined ? await client.callTool({ name, arguments: input }) : result
      await page.setViewportSize({ width, height: 900 })
      await page.goto('/')
      const shown = JSON.stringify({ theme, input, result: answered, opensPages })
      await page.evaluate(`window.show(${shown})`)
      return page.frameLocator('iframe')
    },
    async close() {
      await context.close()
      server.close()
    },
  }
}

function readAddress(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
