/** Stored forms of a wallet's owner and of an operation's authorization. */
import { z } from 'zod'
import type { Authorization, WalletOwner } from '../../../providers/chain/port.ts'

const hex = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]*$/)])

export const walletOwner: z.ZodType<WalletOwner> = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('gateway'), first: hex.exactOptional() }),
  z.object({ kind: z.literal('passkey'), x: hex, y: hex }),
  z.object({ kind: z.literal('eoa'), address: hex }),
])

export const authorization: z.ZodType<Authorization> = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('gateway') }),
  z.object({ kind: z.literal('allowance'), agentId: z.string() }),
  z.object({
    kind: z.literal('passkey'),
    message: z.string(),
    authenticatorData: z.string(),
    clientDataJSON: z.string(),
    signature: z.string(),
  }),
  z.object({ kind: z.literal('eoa'), signature: hex }),
])
