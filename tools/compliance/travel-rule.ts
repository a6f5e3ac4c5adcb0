import { isAddress, zeroAddress } from 'viem'
import { z } from 'zod'
import { countryCode, lei, personName } from '../../src/compliance/identity-fields.ts'
import { recordTravelRule } from '../../src/compliance/record-travel-rule.ts'
import { findOwnTransfer } from '../../src/compliance/store.ts'
import { verifiedName } from '../../src/compliance/verified-person.ts'
import { Failure } from '../../src/failures/failure.ts'
import { type Context, callerOf } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { amountMismatch, decimalAmount, moneyOf, stablecoins } from '../../src/money/money.ts'
import type { Address } from '../../src/providers/chain.ts'
import { findWallet, findWalletOwner, lowerCase } from '../../src/wallets/store.ts'

const party = {
  name: personName.optional().describe('Name of a natural person.'),
  legalName: personName.optional().describe('Name of an organisation, in place of `name`.'),
  country: countryCode.optional().describe('Country of residence or registration, ISO 3166-1 alpha-2.'),
}
const institution = z.object({
  name: personName.describe('Name of the institution.'),
  lei: lei.optional().describe('Its Legal Entity Identifier, ISO 17442.'),
})
const isNamedOnce = (said: { name?: string | undefined; legalName?: string | undefined }) =>
  (said.name === undefined) !== (said.legalName === undefined)
const once = { error: 'needs either name or legalName' }

/** Unknown members are ignored: such bodies come from systems that know more of their customers than we ask. */
const request = z
  .object({
    transferId: z.string().max(64).optional().describe('`tx_…`: a transfer that was sent already.'),
    amount: decimalAmount
      .optional()
      .describe('Without `transferId`: how much the transfer to come will send, as a decimal of the token.'),
    token: z.enum(stablecoins).default('USDC').describe('Stablecoin by symbol.'),
    destination: z
      .string()
      .refine((text): text is Address => isAddress(text) && text !== zeroAddress, {
        error: 'must be an EVM address',
      })
      .optional()
      .describe('Without `transferId`: EVM address that it will pay.'),
    chain: z.string().min(1).max(40).default('base-sepolia').describe('Chain by name.'),
    beneficiary: z
      .object({
        ...party,
        vasp: z
          .union([personName.transform((text) => ({ name: text, lei: undefined })), institution])
          .optional()
          .describe(
            'The institution that keeps the destination, by name or {name, lei}; absent: their own wallet.',
          ),
      })
      .refine(isNamedOnce, once)
      .describe('Who is paid.'),
    originator: z
      .object(party)
      .refine(isNamedOnce, once)
      .optional()
      .describe('Who pays. Absent: the account’s holder.'),
  })
  .superRefine(({ transferId, amount, token, destination }, context) => {
    const issue = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message })
    const misfit = amount === undefined ? undefined : amountMismatch(amount, token)
    if (misfit !== undefined) issue('amount', misfit)
    for (const [path, value] of Object.entries({ amount, destination })) {
      if (transferId === undefined && value === undefined) issue(path, 'is required without transferId')
      if (transferId !== undefined && value !== undefined) issue(path, 'is said by transferId')
    }
  })

export default defineTool({
  name: 'compliance.travel_rule',
  title: 'Travel Rule data',
  summary: 'Say who pays and who is paid by a transfer, as the Travel Rule asks from a threshold on.',
  description:
    'Call it with the very amount, token, destination and chain before a transfer that was refused with `aml_blocked` for `travel_rule`; the data goes with the next such transfer, once. With `transferId` it goes with a transfer that was sent already. With `beneficiary.vasp` that institution is told, and what it says is read at GET /api/compliance/travel-rule/{id}; the transfer waits for it, but not longer than ten seconds. Status `declined`: the name of the beneficiary, their institution or the originator is on a sanctions list, and nothing goes to the destination, whatever is said of it next, until an administrator has looked at it; or the institution does not take the transfer. Sandbox: an institution whose name begins with `Declining` declines, one with `Silent` never answers, others accept.',
  route: 'POST /api/compliance/travel-rule',
  who: 'account',
  scopes: ['compliance:write'],
  effect: 'write',
  mcp: true,
  // Personal data: kept sealed in one place alone, and not among the answers.
  shownOnce: ['payload'],
  input: request,
  output: z.strictObject({
    id: z.string().describe('`tr_…`'),
    status: z
      .enum(['required', 'not_required', 'sent', 'accepted', 'declined'])
      .describe('Whether the rule asks for the data; `declined`: no transfer goes with it.'),
    reason: z.string().describe('Why, for people.'),
    threshold: z
      .strictObject({
        amount: z.string().describe('From which value on the rule holds, as a decimal string.'),
        currency: z.enum(['USD', 'EUR']).describe('Of which currency.'),
      })
      .describe('The threshold of the account’s jurisdiction.'),
    payload: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe(
        'IVMS101.2023; null where an earlier answer is repeated: it is shown once and stored sealed.',
      ),
  }),
  failures: ['not_found', 'conflict', 'chain_not_supported', 'screening_unavailable', 'rates_unavailable'],
  example: {
    amount: '1500',
    token: 'USDC',
    destination: '0x000000000000000000000000000000000000dEaD',
    beneficiary: { name: 'Grace Hopper', country: 'US' },
  },
  run: async (context, input) => {
    const { database } = context
    const { account } = callerOf(context)
    const wallet = await findWallet(database, account.id)
    if (wallet === undefined) throw new Failure('not_found', 'The account has no wallet to pay from.')
    const transfer = await transferOf(context, input)
    const { beneficiary, originator } = input
    const { vasp } = beneficiary
    const owner = await findWalletOwner(database, transfer.destination)
    const tellsInstitutions = context.travelRuleNetwork !== null
    const recorded = await recordTravelRule(
      { ...context, tellsInstitutions },
      {
        ...transfer,
        accountId: account.id,
        wallet,
        isOwnWallet: owner !== undefined,
        originator: named(await originatorOf(context, originator)),
        beneficiary: named(beneficiary),
        beneficiaryVasp: vasp === undefined ? null : { name: vasp.name, lei: vasp.lei ?? null },
      },
    )
    return { ...recorded, payload: { ...recorded.payload } }
  },
})

/** Who pays: the verified person where there is one, whoever is said to. */
async function originatorOf(context: Context, said: z.output<typeof request>['originator']) {
  const { account } = callerOf(context)
  const verified = await verifiedName(context, account.id)
  if (verified !== null) return { name: verified, country: said?.country }
  return said ?? { name: account.displayName }
}

/** The transfer that is asked about. @throws Failure `not_found`, `chain_not_supported`. */
async function transferOf(
  context: Context,
  { transferId, amount, token, destination, chain }: z.output<typeof request>,
) {
  if (transferId === undefined) {
    if (amount === undefined || destination === undefined) throw new Error('the schema asks for both')
    if (chain !== context.chain.name)
      throw new Failure('chain_not_supported', `This deployment does not transfer on "${chain}".`, {
        hint: `Use "${context.chain.name}".`,
      })
    const money = { asset: token, units: moneyOf(token, amount).units }
    return { money, destination: lowerCase(destination), chain, decisionId: null }
  }
  const accountId = callerOf(context).account.id
  const found = await findOwnTransfer(context.database, { accountId, id: transferId })
  if (found === undefined) throw new Failure('not_found', 'The account has no such transfer.')
  return found
}

function named(said: {
  name?: string | undefined
  legalName?: string | undefined
  country?: string | undefined
}) {
  const { name: natural, legalName, country = null } = said
  return { name: legalName ?? natural ?? '', isLegal: legalName !== undefined, country }
}
