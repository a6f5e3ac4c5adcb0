import { z } from 'zod'
import {
  type OrderedAccount,
  openVirtualAccount,
  orderVirtualAccount,
  viewVirtualAccount,
  virtualAccountView,
} from '../../src/banking/open-account.ts'
import { holderName } from '../../src/compliance/verified-person.ts'
import { Failure } from '../../src/failures/failure.ts'
import { callerOf } from '../../src/kernel/context.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { type Stablecoin, stablecoins } from '../../src/money/money.ts'
import { bankCurrencies } from '../../src/providers/banking.ts'
import { findWallet } from '../../src/wallets/store.ts'

export default defineTool({
  name: 'banking.create',
  title: 'Open a virtual account',
  summary: 'Open a virtual bank account in USD, EUR, GBP or INR; what is paid into it arrives in the wallet.',
  description:
    'Asked again for the same currency, it answers the account that is there, or a new one where the bank has closed it; asked with another destination than it has, it answers 409 `conflict`. Deposits become stablecoins in the wallet (USDC, or EURC for EUR) unless `destination` names another. USD may stay cash: `destination` null.',
  route: 'POST /api/banking',
  who: 'account',
  scopes: ['banking:write'],
  effect: 'write',
  ownTransactions: true,
  mcp: true,
  rail: 'bank-deposit',
  input: z
    .strictObject({
      currency: z.enum(bankCurrencies).describe('What it takes.'),
      destination: z
        .strictObject({ token: z.enum(stablecoins).describe('Stablecoin by symbol.') })
        .nullable()
        .optional()
        .describe('What deposits become; null, for USD alone: they stay cash.'),
    })
    .superRefine(({ currency, destination }, context) => {
      // Nothing shows or spends the cash of another currency.
      if (destination === null && currency !== 'USD')
        context.addIssue({
          code: 'custom',
          path: ['destination'],
          message: 'may be null for USD alone: leave it out, or name a token',
        })
    }),
  output: virtualAccountView,
  failures: ['kyc_required', 'provider_unavailable', 'not_found', 'conflict'],
  example: { currency: 'EUR' },
  run: async (context, { currency, destination }) => {
    const { account } = callerOf(context)
    const address = await findWallet(context.database, account.id)
    if (address === undefined) throw new Failure('not_found', 'The account has no wallet to pay into.')
    const token = destination?.token ?? (currency === 'EUR' ? 'EURC' : 'USDC')
    const ordered = await context.database.transaction(async (database) => {
      const found = await orderVirtualAccount(
        { ...context, database },
        {
          holder: { ...account, displayName: await holderName({ ...context, database }, account) },
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

/** A destination is chosen once. @throws Failure `conflict` where the account that is there has another. */
function requireDestination(
  found: OrderedAccount,
  { currency, token }: { currency: string; token: Stablecoin | null },
): void {
  const { id, destination } = found.kind === 'there' ? found.account : found.order
  const chosen = destination?.token ?? null
  if (chosen === token) return
  throw new Failure(
    'conflict',
    `The ${currency} account ${id} is there already, and its deposits ${chosen === null ? 'stay cash' : `become ${chosen}`}.`,
    { hint: 'A destination never changes. Leave it out to get the account that is there: GET /api/banking.' },
  )
}
