/** The catalogue: every tool of the product, once. A test proves that no file is missing. Tools may import base, kernel, ledger, domains and policies. */
import type { Tool } from '../src/kernel/tool.ts'
import agentsKeysChallenge from './agents/keys/challenge.ts'
import agentsKeysCreate from './agents/keys/create.ts'
import authGuest from './auth/guest.ts'
import authIdentityProvider from './auth/identity-provider.ts'
import context from './context.ts'
import sandboxCredentials from './sandbox/credentials.ts'
import sandboxFaucet from './sandbox/faucet.ts'
import walletsGet from './wallets/get.ts'
import walletsTransfer from './wallets/transfer.ts'
import x402Fx from './x402/fx.ts'

export const tools: readonly Tool[] = [
  agentsKeysChallenge,
  agentsKeysCreate,
  authGuest,
  authIdentityProvider,
  context,
  sandboxCredentials,
  sandboxFaucet,
  walletsGet,
  walletsTransfer,
  x402Fx,
]
