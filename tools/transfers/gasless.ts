import { getAddress, isAddressEqual } from 'viem'
import { z } from 'zod'
import { type Screening, worstOf } from '../../policies/aml/screening.ts'
import {
  applyReview,
  findReviewVerdict,
  REVIEW_HINT,
  reviewSubject,
} from '../../src/books/spending/reviews.ts'
import { Failure } from '../../src/core/failures/failure.ts'
import { decimalOf, type Money } from '../../src/core/money/money.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { type AllowedDecision, type AmlScreened, defineTool } from '../../src/kernel/tool.ts'
import { onChain } from '../../src/providers/chain/chains.ts'
import type { Address } from '../../src/providers/chain/port.ts'
import {
  type AuthorizedPayment,
  gaslessRequest,
  toPayment,
} from '../../src/rails/wallets/relays/gasless-request.ts'
import {
  findRepeatedRelay,
  relayPayment,
  type SubmittedRelay,
} from '../../src/rails/wallets/relays/relay-payment.ts'
import { isRelayed } from '../../src/rails/wallets/relays/relay-store.ts'
import {
  authorizingTokens,
  buildRejection,
  judgePayment,
  readPermitNonce,
} from '../../src/rails/wallets/relays/token-authorization.ts'
import { findWalletOwner, lowerCase } from '../../src/rails/wallets/store.ts'

const screening = z.strictObject({
  result: z.enum(['clear', 'review', 'blocked']).describe('AML screening result of payer and payee.'),
  lists: z.array(z.string()).describe('Lists that were checked.'),
})

const facts = z.strictObject({
  screening,
  from: z.string(),
  to: z.string(),
  permitNonce: z.string().nullable(),
})
type Facts = z.output<typeof facts>

export default defineTool({
  name: 'transfers.gasless',
  title: 'Gasless transfer',
  summary:
    'Submit a payment that a payer outside this gateway has signed (EIP-3009, or an EIP-2612 permit); the gateway pays the gas.',
  description:
    'From your own wallet use POST /api/wallets/transfer. It moves the payer’s money, irreversibly (category `gasless`). `settlement_pending`: sent, do not send it again. `authorization_rejected`: nothing was sent; ask the payer for a new signature.',
  restDescription: '1 USDC is 1000000. A signature never pays twice.',
  route: 'POST /api/transfers/gasless',
  who: 'account',
  scopes: ['wallets:transfer'],
  effect: 'spend',
  proof: 'payer',
  mcp: true,
  restOnly: ['permit.v', 'permit.r', 'permit.s', 'permit.spender'],
  rail: 'wallet-gasless',
  rate: 'gasless',
  input: gaslessRequest,
  output: z.strictObject({
    transactionHash: z
      .string()
      .nullable()
      .describe('Hash of the transaction; null if the payment was executed by an unknown transaction.'),
    status: z
      .enum(['confirmed', 'settlement_pending'])
      .describe(
        '`settlement_pending`: broadcast, not yet confirmed; repeat the call with the same idempotency key, or read the transfer by its id.',
      ),
    transferId: z.string().describe('`tx_…`'),
    decisionId: z.string().describe('`dec_…`: the policy decision that allowed it.'),
    token: z.enum(authorizingTokens).describe('Stablecoin by symbol.'),
    amount: z.string().describe('Paid amount, as a decimal string of the token.'),
    from: z.string().describe('EVM address of the payer.'),
    to: z.string().describe('EVM address of the payee.'),
    chain: z.string().describe('Chain by name.'),
    gasSponsored: z.literal(true).describe('Always true: the gateway pays the gas.'),
    screening: screening.describe('The AML screening of payer and payee.'),
  }),
  failures: [
    'authorization_rejected',
    'aml_blocked',
    'policy_denied',
    'approval_required',
    'approval_rejected',
    'chain_not_supported',
    'screening_unavailable',
    'rates_unavailable',
    'provider_unavailable',
    'settlement_pending',
    'conflict',
  ],
  example: {
    token: 'USDC',
    authorization: {
      from: '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf',
      to: '0x000000000000000000000000000000000000dEaD',
      value: '1000000',
      validAfter: '0',
      validBefore: '4000000000',
      nonce: '0x0000000000000000000000000000000000000000000000000000000000000001',
      signature:
        '0xe827a393065174c0cdf764add5d2d81f773d64d1213e373a0315256e93dd1c1c3de20bc3560552fcd07d947a9d84824f070edc07a7fb34ff0c582948ba06c1c91b',
    },
  },
  facts,
  chain: (context, { chain }) => onChain(context, chain),
  spend: async (context, input) => {
    const { chain, database, now } = context
    requireSponsor(context, input)
    const { from: payer, to: destination } = input
    const permitNonce =
      input.permit === undefined ? null : (await readPermitNonce(chain, input.token, payer)).toString()
    const payment = toPayment(input, permitNonce)
    if ((await findWalletOwner(database, payer)) !== undefined)
      throw buildRejection(
        'signature',
        'The payer is a wallet of this gateway, whose payments use POST /api/wallets/transfer.',
      )
    if (await isRelayed(database, { chain: chain.name, payment }))
      throw buildRejection('nonce_used', 'The signed payment was already sent here.')
    await judgePayment(chain, payment, now)
    const money = { asset: payment.token, units: payment.units }
    const aml = await screenParties(context, { money, payer, payee: destination })
    const { result, lists } = aml.screening
    return {
      category: 'gasless',
      money,
      place: null,
      chain: chain.name,
      counterparty: destination,
      aml,
      isSponsored: true,
      facts: {
        screening: { result, lists: [...lists] },
        from: payer,
        to: destination,
        permitNonce,
      },
    }
  },
  run: async (context, input, decided) => {
    const { decisionId, facts: found } = decided
    const sent = await relayPayment(context, {
      accountId: requireCaller(context).account.id,
      decisionId,
      payment: toPayment(input, found.permitNonce),
      at: context.now,
    })
    return toAnswer(context, sent, input, decided)
  },
  recall: async (context, input, decided) => {
    const sent = await findRepeatedRelay(context, decided.decisionId)
    return sent === null ? null : toAnswer(context, sent, input, decided)
  },
})

/** Checks that the permit's spender is the sponsor, which collects the money and pays the gas. */
function requireSponsor({ chain: { signer } }: Pick<Context, 'chain'>, { permit }: AuthorizedPayment): void {
  if (permit?.spender === undefined || isAddressEqual(permit.spender, signer.address)) return
  throw buildRejection(
    'signature',
    `The permit is for ${permit.spender}; its spender must be the sponsor, ${signer.address}.`,
  )
}

/** Screens both parties. @throws Failure `screening_unavailable`. */
async function screenParties(
  context: Context,
  { money, payer, payee }: { money: Money; payer: Address; payee: Address },
): Promise<AmlScreened> {
  const { database, chain, now, screening: lists } = context
  const caller = requireCaller(context)
  const keyId = caller.kind === 'key' ? caller.key.id : null
  const accountId = caller.account.id
  const subject = reviewSubject({ keyId, category: 'gasless', money, chain: chain.name, payer, payee })
  const [found, verdict] = await Promise.all([
    Promise.all([payer, payee].map((address) => lists.screen(lowerCase(address)))),
    findReviewVerdict(database, { accountId, subject, at: now }),
  ])
  const worst = worstOf(found)
  return {
    ...applyReview({ result: worst.result, lists: [...new Set(worst.lists)] }, verdict),
    subject,
    windows: [],
    refusal: buildBlockedFailure,
  }
}

function buildBlockedFailure(screening: Screening, recorded: Parameters<AmlScreened['refusal']>[1]): Failure {
  const isReview = screening.result === 'review'
  return new Failure(
    'aml_blocked',
    `The AML policy ${isReview ? 'requires a review of' : 'blocks'} the payer or the payee.`,
    {
      screening,
      ...recorded,
      hint: `Tell the owner. Do not pay it by another way or between other addresses.${isReview ? ` ${REVIEW_HINT}` : ''}`,
    },
  )
}

/** Builds the answer for a relay, the same for every call. */
function toAnswer(
  { chain }: Pick<Context, 'chain'>,
  sent: SubmittedRelay,
  { token, value }: AuthorizedPayment,
  { decisionId, facts }: AllowedDecision<Facts>,
) {
  return {
    ...sent,
    decisionId,
    token,
    amount: decimalOf({ asset: token, units: value }),
    from: getAddress(facts.from),
    to: getAddress(facts.to),
    chain: chain.name,
    gasSponsored: true as const,
    screening: facts.screening,
  }
}
