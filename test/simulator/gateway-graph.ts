/** What a simulated gateway is made of: bundled, and evaluated once for each of its lives, so that no two share a module. */
export { mcpHandler } from '../../mcp/http.ts'
export { openGateway } from '../../src/commands/open-gateway.ts'
export { readConfig } from '../../src/core/config/read-config.ts'
export { Failure } from '../../src/core/failures/failure.ts'
export { createRuntime } from '../../src/runtime.ts'
export { settingsErrors } from '../../src/settings.ts'
export { databaseOnPool } from '../../src/storage/database-on-pool.ts'
export { tools } from '../../tools/index.ts'
