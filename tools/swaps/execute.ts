import { z } from 'zod'
import { noteMembers } from '../../src/books/spending/spend-note.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { countSignature } from '../../src/people/identity/passkeys/count-signature.ts'
import { readAssertion } from '../../src/people/identity/passkeys/passkey-response.ts'
import { passkeySigners } from '../../src/people/identity/passkeys/passkey-signature.ts'
import { onChain } from '../../src/providers/chain/chains.ts'
import { refineSwap, swapMembers, swapView, viewSwap } from '../../src/rails/swaps/orders.ts'
import { type PlannedSwap, planSwap } from '../../src/rails/swaps/plan-swap.ts'
import { buildDeskTransfer, findRepeatedSwap, sendSwap } from '../../src/rails/swaps/send-swap.ts'
import { executableQuote, plainQuote } from '../../src/rails/swaps/store.ts'
import { findIntent } from '../../src/rails/wallets/signing/intent-store.ts'
import { signatureMember } from '../../src/rails/wallets/signing/signature-member.ts'
import { buildRejection } from '../../src/rails/wallets/signing/verify-signature.ts'
import { findOwnedWallet } from '../../src/rails/wallets/store.ts'
import {
  type AuthorizedTransfer,
  authorizedTransfer,
  authorizeTransfer,
  buildAuthorization,
} from '../../src/rails/wallets/transfers/authorize-transfer.ts'
import { gatewayAuthorization } from '../../src/rails/wallets/transfers/gateway-authorization.ts'
import type { TransferAuthorization } from '../../src/rails/wallets/transfers/send-transfer.ts'

type OwnedWallet = NonNullable<Awaited<ReturnType<typeof findOwnedWallet>>>

const NAME = 'swaps.execute'

const swapRequest = z
  .strictObject({
    ...swapMembers,
    ...noteMembers,
    intentId: z.string().max(64).optional().describe('`int_…`: signed intent of the quote.'),
    signature: signatureMember(
      'Signature of the intent from POST /api/swaps/orders/intent: a passkey’s assertion (base64url of its JSON) or a registered EVM key’s EIP-712 signature (0x hex). Required for a person whose account has a signer.',
    ),
  })
  .superRefine(refineSwap)

const swapFacts = z.strictObject({
  quoteId: z.string().nullable(),
  /** {@link plainQuote} */
  swap: z.record(z.string(), z.unknown()),
  authorized: authorizedTransfer.nullable(),
})

export default defineTool({
  name: NAME,
  title: 'Swap stablecoins',
  summary: 'Swap a stablecoin of the wallet to another on its chain, or send USDC to another chain.',
  description:
    'Name an `executable` quote, or `sell` and `buy`. At least `minReceived` arrives, or nothing moves. `submitted` and `bridging`: sent, do not send it again, read GET /api/swaps/orders/{id}. `swap_rejected`: nothing was sent; see `reason`. After a timeout repeat with the same idempotency key.',
  restDescription:
    'The route’s call is made by a contract of the gateway, away from the wallet, and simulated first. The gateway pays the gas. Category `swap`.',
  route: 'POST /api/swaps/orders',
  who: 'account',
  scopes: ['swaps:execute'],
  effect: 'spend',
  proof: 'signature',
  mcp: true,
  restOnly: ['intentId', 'signature'],
  rail: 'wallet-transfer',
  input: swapRequest,
  output: swapView,
  failures: [
    'swap_rejected',
    'insufficient_funds',
    'signature_rejected',
    'policy_denied',
    'approval_required',
    'approval_rejected',
    'chain_not_supported',
    'pair_not_supported',
    'no_route',
    'rates_unavailable',
    'provider_unavailable',
    'settlement_pending',
    'not_found',
    'conflict',
  ],
  example: { sell: { token: 'USDC', amount: '5' }, buy: { token: 'EURC' } },
  facts: swapFacts,
  spend: async (context, input) => {
    const caller = requireCaller(context)
    const accountId = caller.account.id
    const wallet = await findOwnedWallet(context.database, accountId)
    if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet.')
    const swap = await planSwap(context, {
      ...input,
      accountId,
      wallet: wallet.address,
      isSigned: input.signature !== undefined,
      isApproved: context.approvedBy !== undefined,
    })
    const authorized = await authorizeSwap(context, { swap, wallet, input })
    return {
      category: 'swap',
      money: { asset: swap.sell, units: swap.units },
      place: swap.chain,
      chain: swap.chain,
      counterparty: null,
      isSponsored: true,
      signedBy: authorized?.signer === 'passkey' || authorized?.signer === 'eoa' ? authorized.signerId : null,
      facts: { quoteId: swap.quoteId, swap: plainQuote(swap), authorized },
    }
  },
  run: async (context, { signature }, { decisionId, facts }) => {
    const { authorized, quoteId } = facts
    if (authorized !== null) await countSignature(context, authorized, decisionId)
    const swap = executableQuote.parse(facts.swap)
    const authorizedBy = await buildSwapAuthorization(context, { authorized, signature })
    const caller = requireCaller(context)
    return viewSwap(
      await sendSwap(onChain(context, swap.chain), {
        ...{ swap, quoteId, decisionId, authorizedBy, at: context.now },
        accountId: caller.account.id,
        keyId: caller.kind === 'key' ? caller.key.id : null,
      }),
    )
  },
  recall: async (context, _input, { decisionId, facts }) => {
    const { chain } = executableQuote.parse(facts.swap)
    const swap = await findRepeatedSwap(onChain(context, chain), {
      decisionId,
      intentId: facts.authorized?.intentId ?? null,
    })
    return swap === null ? null : viewSwap(swap)
  },
})

type Input = z.output<typeof swapRequest>

/**
 * Authorizes a person's swap by the owner's signature; null where the gateway signs.
 * @throws Failure `signature_rejected`.
 */
async function authorizeSwap(
  context: Context,
  {
    swap,
    wallet,
    input: { signature, intentId },
  }: { readonly swap: PlannedSwap; readonly wallet: OwnedWallet; readonly input: Input },
): Promise<AuthorizedTransfer | null> {
  const caller = requireCaller(context)
  const isNamed = signature !== undefined || intentId !== undefined
  if (caller.kind === 'key') {
    if (!isNamed) return null
    throw buildRejection('The credential of the request authorizes the swap.', caller.key)
  }
  const isGuarded = await context.hasSigner(context.database, caller.account.id)
  if (!isNamed && !isGuarded) return null
  if (intentId === undefined) throw buildRejection('The swap names no signed intent.', null)
  const { chain } = onChain(context, swap.chain)
  const { authorized } = await authorizeTransfer(
    { ...context, chain, passkeys: passkeySigners(context), askedAt: async () => undefined },
    {
      accountId: caller.account.id,
      parties: { wallet, hasEvmKey: isGuarded, hasPasskey: isGuarded, isOwnWallet: false },
      key: null,
      transfer: buildDeskTransfer(chain, swap),
      signature,
      intentId,
      at: context.now,
    },
  )
  return authorized
}

/** Builds the authorization of the transfer to the desk: the owner's signature, or the gateway's. */
async function buildSwapAuthorization(
  context: Context,
  {
    authorized,
    signature,
  }: { readonly authorized: AuthorizedTransfer | null; readonly signature: string | undefined },
): Promise<TransferAuthorization> {
  const caller = requireCaller(context)
  const accountId = caller.account.id
  if (authorized === null) {
    const wallet = await findOwnedWallet(context.database, accountId)
    if (wallet === undefined) throw new Error(`${accountId} has no wallet`)
    return gatewayAuthorization(wallet, caller.kind === 'key' ? caller.key.id : null)
  }
  const { intentId } = authorized
  const intent =
    intentId === null ? undefined : await findIntent(context.database, { accountId, id: intentId })
  const assertion = authorized.signer === 'passkey' ? readAssertion(signature ?? '')?.response : undefined
  return buildAuthorization({ authorized, intent, signature, assertion, at: context.now })
}
