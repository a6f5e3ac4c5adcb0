/** An account with a funded wallet on the simulated chain, and the dependencies for sending from it. */
import { screenSandboxSuffix } from '../../../policies/aml/sandbox-suffix.ts'
import { available, held } from '../../../src/books/ledger/accounts.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { systemClock } from '../../../src/core/base/clock.ts'
import { newId } from '../../../src/core/base/ids.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { createAccount } from '../../../src/people/identity/accounts.ts'
import type { Chain } from '../../../src/providers/chain/port.ts'
import { createSandboxScreening } from '../../../src/providers/screening/sandbox.ts'
import { bookDeposit, demoFunds, openWallet } from '../../../src/rails/wallets/open-wallet.ts'
import type { ReconciliationDependencies } from '../../../src/rails/wallets/reconcile/reconcile.ts'
import type {
  TransferDependencies,
  TransferOrder,
} from '../../../src/rails/wallets/transfers/send-transfer.ts'
import type { Database } from '../../../src/storage/database.ts'

/** An address outside the gateway. */
export const outsideAddress = '0x000000000000000000000000000000000000dEaD'

/** Dependencies of sending, on a database and a chain. */
export function sendingDependencies(
  database: Database,
  chain: Chain,
): TransferDependencies & ReconciliationDependencies {
  const settings = { dataKey: Buffer.alloc(32, 3) }
  const screening = createSandboxScreening(screenSandboxSuffix)
  return { database, chain, newId, clock: systemClock, log: silentLog, settings, screening }
}

/** Opens an account whose wallet has the demo funds, in the ledger and on the chain. */
export async function openFundedAccount({ database, chain }: TransferDependencies) {
  const at = systemClock()
  const { id: accountId } = await createAccount({ database, newId }, { displayName: 'Test', guest: true, at })
  const address = await openWallet({ database, chain }, { accountId, at })
  await bookDeposit({ database, chain, newId }, { accountId, funds: demoFunds, reference: accountId, at })
  await chain.mint(demoFunds.map(({ asset, units }) => ({ token: asset, to: address, units })))
  return { accountId, address }
}

/** A person's transfer of USDC, as its reserve is asked for it. */
export function describeTransferSpend({
  accountId,
  units,
  destination,
  ...rest
}: {
  accountId: string
  units: bigint
  destination: `0x${string}`
  decisionId: string
  place: string
  at: Date
}) {
  return {
    ...rest,
    accountId,
    key: null,
    policyHash: null,
    operation: 'wallets.transfer',
    facts: { found: {} },
    violations: [],
    money: { asset: 'USDC', units },
    usdMicros: units,
    counterparty: destination,
    cooldownSeconds: null,
    needsApproval: false,
    isApproved: false,
  } as const
}

/** Reserves USDC as a person's spend. @returns the order to send it. */
export async function reserveOrder(
  { database, chain }: TransferDependencies,
  {
    accountId,
    units,
    destination = outsideAddress,
  }: { accountId: string; units: bigint; destination?: `0x${string}` },
): Promise<TransferOrder> {
  const at = systemClock()
  const decisionId = newId('dec', at)
  const place = chain.name
  const decided = await reserveSpend(database, {
    ...describeTransferSpend({ accountId, units, destination, decisionId, place, at }),
    idempotency: null,
  })
  if (decided.verdict !== 'allow') throw new Error(`the scene expected allow and got ${decided.verdict}`)
  return {
    authorizedBy: { signer: 'sandbox', authorization: { kind: 'gateway' } },
    accountId,
    decisionId,
    token: 'USDC',
    units,
    destination,
    at,
  }
}

/** An account's USDC in the ledger, in smallest units. */
export async function usdcBalance(
  { database, chain }: TransferDependencies,
  accountId: string,
): Promise<{ available: bigint; held: bigint }> {
  const readUnits = async (account: string) => {
    const row = await database.kysely
      .selectFrom('balance')
      .select('units')
      .where('account', '=', account)
      .where('asset', '=', 'USDC')
      .executeTakeFirst()
    return row?.units ?? 0n
  }
  return {
    available: await readUnits(available(accountId, chain.name)),
    held: await readUnits(held(accountId, chain.name)),
  }
}
