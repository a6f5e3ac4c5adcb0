import type { Principal } from '../src/base/principal.ts'

export interface McpCaller {
  readonly principal: Extract<Principal, { kind: 'key' }>
  readonly requestId: string
  readonly now: Date
  readonly clientAddress: string
}
