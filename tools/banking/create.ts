import { z } from 'zod'
import { Failure } from '../../src/core/failures/failure.ts'
import { type Stablecoin, stablecoins } from '../../src/core/money/money.ts'
import { requireCaller } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { loadHolderName } from '../../src/people/compliance/verified-person.ts'
import { bankCurrencies } from '../../src/providers/banking/port.ts'
import { requireBankCustomer } from '../../src/rails/banking/bank-customer.ts'
import {
  type OrderedAccount,
  openVirtualAccount,
  orderVirtualAccount,
  viewVirtualAccount,
  virtualAccountView,
} from '../../src/rails/banking/open-account.ts'
import { findWallet } from '../../src/rails/wallets/store.ts'

export default defineTool({
  name: 'banking.create',
  title: 'Open a virtual account',
  summary: 'Open a virtual bank account in USD, EUR, GBP or INR; what is paid into it arrives in the wallet.',
  description:
    'Use it when the owner wants to receive bank transfers; one account per currency is enough, and a repeated call returns it. Deposits become USDC (EURC for EUR) unless `destination` names another token, which never changes.',
  restDescription:
    'For USD, `destination` null keeps cash. A closed account is opened anew. `conflict`: the account exists with another destination. `provider_unavailable`: repeat later with the same idempotency key.',
  route: 'POST /api/banking',
  who: 'account',
  scopes: ['banking:write'],
  effect: 'write',
  proof: 'none',
  ownTransactions: true,
  mcp: true,
  rail: 'bank-deposit',
  input: z
    .strictObject({
      currency: z.enum(bankCurrencies).describe('Currency of its deposits.'),
      destination: z
        .strictObject({ token: z.enum(stablecoins).describe('Stablecoin by symbol.') })
        .nullable()
        .optional()
        .describe('Token that deposits become; null (USD only): cash.'),
    })
    .superRefine(({ currency, destination }, context) => {
      // Cash of other currencies is neither shown nor spendable.
      if (destination === null && currency !== 'USD')
        context.addIssue({
          code: 'custom',
          path: ['destination'],
          message: 'may be null for USD only: omit it, or name a token',
        })
    }),
  output: virtualAccountView,
  failures: ['kyc_required', 'provider_unavailable', 'not_found', 'conflict'],
  example: { currency: 'EUR' },
  run: async (context, { currency, destination }) => {
    const { account } = requireCaller(context)
    const address = await findWallet(context.database, account.id)
    if (address === undefined) throw new Failure('not_found', 'The account has no wallet to pay into.')
    await requireBankCustomer(context, { accountId: account.id, at: context.now })
    const token = destination?.token ?? (currency === 'EUR' ? 'EURC' : 'USDC')
    const ordered = await context.database.transaction(async (database) => {
      const found = await orderVirtualAccount(
        { ...context, database },
        {
          holder: { ...account, displayName: await loadHolderName({ ...context, database }, account) },
          currency,
          destination: destination === null ? null : { token, chain: context.chain.name, address },
          at: context.now,
        },
      )
      if (destination !== undefined)
        requireDestination(found, { currency, token: destination?.token ?? null })
      return found
    })
    return viewVirtualAccount(await openVirtualAccount(context, ordered))
  },
})

/** A destination never changes. @throws Failure `conflict` when the existing account has a different one. */
function requireDestination(
  found: OrderedAccount,
  { currency, token }: { currency: string; token: Stablecoin | null },
): void {
  const { id, destination } = found.kind === 'there' ? found.account : found.order
  const chosen = destination?.token ?? null
  if (chosen === token) return
  throw new Failure(
    'conflict',
    `The ${currency} account ${id} already exists, and its deposits ${chosen === null ? 'stay cash' : `are converted to ${chosen}`}.`,
    { hint: 'A destination never changes. Omit it to get the existing account: GET /api/banking.' },
  )
}
