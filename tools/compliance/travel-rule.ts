import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { chainInput } from '../../src/core/money/chains.ts'
import { amountMismatch, decimalAmount, stablecoins, toMoney } from '../../src/core/money/money.ts'
import { type Context, requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { countryCode, lei, personName } from '../../src/people/compliance/identity-fields.ts'
import { recordTravelRule } from '../../src/people/compliance/record-travel-rule.ts'
import { findOwnTransfer } from '../../src/people/compliance/store.ts'
import { verifiedName } from '../../src/people/compliance/verified-person.ts'
import { findWallet, findWalletOwner, lowerCase } from '../../src/rails/wallets/store.ts'
import { payeeAddress } from '../../src/rails/wallets/transfers/transfer-members.ts'

const party = {
  name: personName.optional().describe('Of a natural person.'),
  legalName: personName.optional().describe('Of an organisation, instead of `name`.'),
  country: countryCode.optional().describe('ISO 3166-1 alpha-2.'),
}
const institution = z.object({
  name: personName.describe('Its name.'),
  lei: lei.optional().describe('ISO 17442.'),
})
const isNamedOnce = (said: { name?: string | undefined; legalName?: string | undefined }) =>
  (said.name === undefined) !== (said.legalName === undefined)
const once = { error: 'needs either name or legalName' }

/** Unknown members are ignored, because clients often send complete customer records. */
const request = z
  .object({
    transferId: z.string().max(64).optional().describe('`tx_…`, already sent; without the next four.'),
    amount: decimalAmount.optional().describe('Of the planned transfer.'),
    token: z.enum(stablecoins).default('USDC').describe('Stablecoin by symbol.'),
    destination: payeeAddress.optional().describe('Payee of the planned transfer.'),
    chain: chainInput.optional().describe('Default: the first of this deployment.'),
    beneficiary: z
      .object({
        ...party,
        vasp: z
          .union([personName.transform((text) => ({ name: text, lei: undefined })), institution])
          .optional()
          .describe('Institution of the destination; absent: self-hosted.'),
      })
      .refine(isNamedOnce, once)
      .describe('Who receives.'),
    originator: z
      .object(party)
      .refine(isNamedOnce, once)
      .optional()
      .describe('Who sends. Default: the account’s holder.'),
  })
  .superRefine(({ transferId, amount, token, destination }, context) => {
    const issue = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message })
    const misfit = amount === undefined ? undefined : amountMismatch(amount, token)
    if (misfit !== undefined) issue('amount', misfit)
    for (const [path, value] of Object.entries({ amount, destination })) {
      if (transferId === undefined && value === undefined) issue(path, 'is required without transferId')
      if (transferId !== undefined && value !== undefined) issue(path, 'is not allowed with transferId')
    }
  })

export default defineTool({
  name: 'compliance.travel_rule',
  title: 'Travel Rule data',
  summary: 'Submit originator and beneficiary of a transfer, as the Travel Rule requires above a threshold.',
  description:
    'Use it after `aml_blocked` for `travel_rule`, with the same amount, token, destination and chain, then repeat the transfer: the data is used once. Do not invent names: ask your owner. `beneficiary.vasp` is notified; its answer is at GET /api/compliance/travel-rule/{id}.',
  restDescription:
    'The transfer waits at most ten seconds for the institution. `declined`: transfers there stay blocked, whatever the data, until an administrator has reviewed it. Sandbox: an institution named `Declining…` declines, `Silent…` never answers.',
  route: 'POST /api/compliance/travel-rule',
  who: 'account',
  scopes: ['compliance:write'],
  effect: 'write',
  proof: 'none',
  mcp: true,
  // Personal data is stored sealed in one place only, and not with the idempotent answers.
  shownOnce: ['payload'],
  payee: 'destination',
  input: request,
  output: z.strictObject({
    id: z.string().describe('`tr_…`'),
    status: z
      .enum(['required', 'not_required', 'sent', 'accepted', 'declined'])
      .describe('True if the rule requires the data; `declined`: the data cannot be used for a transfer.'),
    reason: z.string().describe('Human-readable reason.'),
    threshold: z
      .strictObject({
        amount: z.string().describe('Threshold value, as a decimal string.'),
        currency: z.enum(['USD', 'EUR']).describe('Currency of the threshold.'),
      })
      .describe('The threshold of the account’s jurisdiction.'),
    payload: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe(
        'IVMS101.2023 payload; null in a replayed answer, because it is shown once and stored sealed.',
      ),
  }),
  failures: [
    'kyc_required',
    'not_found',
    'conflict',
    'chain_not_supported',
    'screening_unavailable',
    'rates_unavailable',
  ],
  example: {
    amount: '1500',
    token: 'USDC',
    destination: '0x000000000000000000000000000000000000dEaD',
    beneficiary: { name: 'Grace Hopper', country: 'US' },
  },
  run: async (context, input) => {
    const { database } = context
    const { account } = requireCaller(context)
    const wallet = await findWallet(database, account.id)
    if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet to pay from.')
    const transfer = await findTransfer(context, input)
    const { beneficiary, originator } = input
    const { vasp } = beneficiary
    const owner = await findWalletOwner(database, transfer.destination)
    const verified = await verifiedName(context, account.id)
    const tellsInstitutions = context.travelRuleNetwork !== null
    const recorded = await recordTravelRule(
      { ...context, tellsInstitutions },
      {
        ...transfer,
        accountId: account.id,
        wallet,
        isOwnWallet: owner !== undefined,
        // The verified holder, whatever name was submitted.
        originator: nameParty(
          verified === null
            ? (originator ?? { name: account.displayName })
            : { name: verified, country: originator?.country },
        ),
        isVerified: verified !== null,
        beneficiary: nameParty(beneficiary),
        beneficiaryVasp: vasp === undefined ? null : { name: vasp.name, lei: vasp.lei ?? null },
      },
    )
    return { ...recorded, payload: { ...recorded.payload } }
  },
})

/** Resolves the transfer that the data is for. @throws Failure `not_found`, `chain_not_supported`. */
async function findTransfer(
  context: Context,
  { transferId, amount, token, destination, chain = context.chain.name }: z.output<typeof request>,
) {
  if (transferId === undefined) {
    if (amount === undefined || destination === undefined) throw new Error('the schema requires both')
    const money = { asset: token, units: toMoney(token, amount).units }
    return {
      money,
      destination: lowerCase(destination),
      chain: context.chains.of(chain).name,
      decisionId: null,
    }
  }
  const accountId = requireCaller(context).account.id
  const found = await findOwnTransfer(context.database, { accountId, id: transferId })
  if (found === undefined) throw new Failure('not_found', 'The account has no such transfer.')
  return found
}

function nameParty(said: {
  name?: string | undefined
  legalName?: string | undefined
  country?: string | undefined
}) {
  const { name: natural, legalName, country = null } = said
  return { name: legalName ?? natural ?? '', isLegal: legalName !== undefined, country }
}
