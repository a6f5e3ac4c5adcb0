/** The catalogue: every tool of the product, once. A test proves that no file is missing. Tools may import base, kernel, ledger, domains and policies. */
import type { Tool } from '../src/kernel/tool.ts'
import agentsKeysChallenge from './agents/keys/challenge.ts'
import agentsKeysCreate from './agents/keys/create.ts'
import authGuest from './auth/guest.ts'
import authOtpStart from './auth/otp/start.ts'
import authOtpVerify from './auth/otp/verify.ts'
import authRecoveryComplete from './auth/recovery/complete.ts'
import authRecoveryStart from './auth/recovery/start.ts'
import context from './context.ts'
import sandboxCredentials from './sandbox/credentials.ts'
import sandboxFaucet from './sandbox/faucet.ts'
import sandboxOutbox from './sandbox/outbox.ts'
import walletsGet from './wallets/get.ts'
import walletsTransfer from './wallets/transfer.ts'
import x402Fx from './x402/fx.ts'

export const tools: readonly Tool[] = [
  agentsKeysChallenge,
  agentsKeysCreate,
  authGuest,
  authOtpStart,
  authOtpVerify,
  authRecoveryComplete,
  authRecoveryStart,
  context,
  sandboxCredentials,
  sandboxFaucet,
  sandboxOutbox,
  walletsGet,
  walletsTransfer,
  x402Fx,
]
