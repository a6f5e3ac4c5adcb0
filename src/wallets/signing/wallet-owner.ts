/** The owner of a wallet and the authorization of its operations, as stored. */
import { z } from 'zod'
import type { Authorization, WalletOwner } from '../../providers/chain.ts'

const hex = z.templateLiteral(['0x', z.string().regex(/^[0-9a-fA-F]*$/)])

/** {@link WalletOwner}, parsed. */
export const walletOwner: z.ZodType<WalletOwner> = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('gateway') }),
  z.object({ kind: z.literal('passkey'), x: hex, y: hex }),
  z.object({ kind: z.literal('eoa'), address: hex }),
])

/** {@link Authorization}, parsed. */
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
