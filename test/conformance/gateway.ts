/** The gateway as started by `bursar serve`, with the suite's fixture next to its own tools on `/mcp`. */
import { mcpHandler } from '../../mcp/http.ts'
import { serve } from '../../src/commands/serve.ts'
import { tools } from '../../tools/index.ts'
import { on2025 } from './fixture-2025.ts'
import { on2026 } from './fixture-2026.ts'

process.exitCode = await serve(process.env, {
  tools,
  mcpHandler: (catalogue, services, options) =>
    mcpHandler(catalogue, services, { ...options, registrations: { on2025, on2026 } }),
})
