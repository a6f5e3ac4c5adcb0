/** `import { Bursar, verifyWebhook } from 'bursar/client'`. */
export { Bursar, type BursarOptions, type ListenOptions } from './bursar.ts'
export type { Call, CallOptions, List, Pages } from './call.ts'
export { type DelegatedKey, type DelegationTerms, delegate } from './delegate.ts'
export type * from './operations.ts'
export type { PayingFetch, PayOptions } from './paying-fetch.ts'
export { BursarProblem, BursarUnreachable, PaymentRequired } from './problem.ts'
export type { AgentKey } from './sign.ts'
export { verifyWebhook, type WebhookHeaders } from './verify-webhook.ts'
