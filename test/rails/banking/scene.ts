/** A bank with virtual accounts, and its webhooks, for tests. */
import { screenSandboxSuffix } from '../../../policies/aml/sandbox-suffix.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import type { BankCurrency, BankingEvent, BankingProvider } from '../../../src/providers/banking/port.ts'
import type { Mint } from '../../../src/providers/chain/port.ts'
import type { Rates } from '../../../src/providers/rates/port.ts'
import { createSnapshotRates } from '../../../src/providers/rates/sandbox.ts'
import { createOfacExcerpt } from '../../../src/providers/sanctions/ofac-excerpt.ts'
import { createSandboxScreening } from '../../../src/providers/screening/sandbox.ts'
import { applyBankingEvent } from '../../../src/rails/banking/apply-event.ts'
import { openVirtualAccount, orderVirtualAccount } from '../../../src/rails/banking/open-account.ts'
import type { Destination, VirtualAccount } from '../../../src/rails/banking/store.ts'
import type { Connection, Database } from '../../../src/storage/database.ts'
import { authenticateDecision, dataKey, noon } from '../cards/scene.ts'

const bank = {
  open: async ({ id }: { id: string }) => ({
    providerId: id,
    customer: null,
    status: 'active' as const,
    bankName: 'Bank',
    bankAddress: 'Street',
    instructions: { routingNumber: '123000013', accountNumber: '1', rails: ['ach'] },
  }),
}

/** Returns a virtual account of an owner, opening it if needed. */
export async function open(
  database: Database,
  accountId: string,
  {
    currency = 'USD',
    destination = null,
    mode = 'sandbox',
    bankingProvider = bank,
  }: {
    currency?: BankCurrency
    destination?: Destination | null
    mode?: 'sandbox' | 'production'
    bankingProvider?: Pick<BankingProvider, 'open'>
  } = {},
): Promise<VirtualAccount> {
  const holder = { id: accountId, displayName: 'Ada', kycLevel: 'none' }
  const ordered = await database.transaction((connection) =>
    orderVirtualAccount(
      { database: connection, newId, settings: { mode, accountsPerCurrency: 1 } },
      { holder, currency, destination, at: noon },
    ),
  )
  return openVirtualAccount({ database, bankingProvider }, ordered)
}

export const wallet: Destination = {
  token: 'USDC',
  chain: 'base-sepolia',
  address: '0x000000000000000000000000000000000000dEaD',
}

/** Reports a deposit of 12.50, as the webhook does. */
export function applyDeposit(
  database: Database,
  account: VirtualAccount,
  state: string,
  changes: Partial<BankingEvent> = {},
  isBookedHere = true,
  rates: Rates = createSnapshotRates(),
) {
  const parts = {
    database,
    rates,
    chain: { name: 'base-sepolia' },
    chains: { all: [{ name: 'base-sepolia' }] },
    newId,
    vouch: authenticateDecision,
    isBookedHere,
    settings: { dataKey, cardSpreadBps: 0 },
    sanctions: createOfacExcerpt(),
    screening: createSandboxScreening(screenSandboxSuffix),
    oweMint: async (_connection: Connection, _accountId: string, mint: Mint) => mint,
    log: silentLog,
  }
  const event = {
    eventId: newId('evt', noon),
    type: 'updated',
    kind: 'deposit',
    objectId: `deposit-${account.id}`,
    reference: null,
    state,
    virtualAccount: account.providerId,
    amount: '12.50',
    currency: null,
    customer: null,
    sender: null,
    memo: null,
    ...changes,
  } as const
  return applyBankingEvent(parts, event, noon)
}
