import type { Principal } from '../core/base/principal.ts'

/** A request for a mounted transport, such as MCP, after the shared checks and authentication. */
export interface AuthenticatedRequest {
  readonly request: Request
  readonly body: Uint8Array
  readonly principal: Principal
  readonly requestId: string
  readonly now: Date
  readonly clientAddress: string
  /** Refunds what the request was counted in, once, because a limit of the operation refused it. */
  readonly refundCounts: () => Promise<void>
}
