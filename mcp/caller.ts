import type { Principal } from '../src/core/base/principal.ts'

export interface McpCaller {
  readonly principal: Extract<Principal, { kind: 'key' }>
  readonly requestId: string
  readonly now: Date
  readonly clientAddress: string
  /** Refunds what the request was counted in, once. */
  readonly refundCounts: () => Promise<void>
  /** Rooms whose tools are offered; null: all. */
  readonly toolsets: ReadonlySet<string> | null
}
