/** Every migration by its name, in order. Forward only: a released one never changes, what follows gets a new number. */
import { tables } from './migrations/0001-tables.ts'
import { ledger } from './migrations/0002-ledger.ts'
import { spending } from './migrations/0003-spending.ts'
import { people } from './migrations/0004-people.ts'
import { budgets } from './migrations/0005-budgets.ts'
import { audit } from './migrations/0006-audit.ts'
import { approvals } from './migrations/0007-approvals.ts'
import { wallets } from './migrations/0008-wallets.ts'
import { compliance } from './migrations/0009-compliance.ts'
import { payments } from './migrations/0010-payments.ts'
import { relays } from './migrations/0011-relays.ts'
import { investing } from './migrations/0012-investing.ts'
import { swaps } from './migrations/0013-swaps.ts'
import { cardApply } from './migrations/0014-card-apply.ts'
import { cardAuthorize } from './migrations/0014-card-authorize.ts'
import { cardCoverage } from './migrations/0014-card-coverage.ts'
import { cards } from './migrations/0014-cards.ts'
import { debtFunctions, debtTables } from './migrations/0014-debts.ts'
import { settlementFunctions, settlementTables } from './migrations/0014-settlements.ts'
import { banking } from './migrations/0015-banking.ts'
import { kyc } from './migrations/0016-kyc.ts'
import { relayRejections } from './migrations/0017-relays.ts'
import { transferFailures } from './migrations/0018-transfer-failures.ts'
import { mcpSessions } from './migrations/0019-mcp-sessions.ts'
import { relaysByAccount } from './migrations/0021-relays-by-account.ts'
import { intentions } from './migrations/0023-intentions.ts'
import { verdicts } from './migrations/0024-verdicts.ts'
import { purchases } from './migrations/0025-purchases.ts'
import { listedParties } from './migrations/0028-listed-parties.ts'
import { outflows } from './migrations/0029-outflows.ts'
import { alarms } from './migrations/0030-alarms.ts'
import { reviews } from './migrations/0031-reviews.ts'
import { journal } from './migrations/0032-journal.ts'

/** The SQL of each migration, for PostgreSQL 15 and PGlite alike. */
export const migrations: Readonly<Record<string, string>> = {
  '0001-tables': tables,
  '0002-ledger': ledger,
  '0003-spending': spending,
  '0004-people': people,
  '0005-budgets': budgets,
  '0006-audit': audit,
  '0007-approvals': approvals,
  '0008-wallets': wallets,
  '0009-compliance': compliance,
  '0010-payments': payments,
  '0011-relays': relays,
  '0012-investing': investing,
  '0013-swaps': swaps,
  '0014-cards':
    cards +
    settlementTables +
    debtTables +
    settlementFunctions +
    debtFunctions +
    cardCoverage +
    cardAuthorize +
    cardApply,
  '0015-banking': banking,
  '0016-kyc': kyc,
  '0017-relays': relayRejections,
  '0018-transfer-failures': transferFailures,
  '0019-mcp-sessions': mcpSessions,
  '0021-relays-by-account': relaysByAccount,
  '0023-intentions': intentions,
  '0024-verdicts': verdicts,
  '0025-purchases': purchases,
  '0028-listed-parties': listedParties,
  '0029-outflows': outflows,
  '0030-alarms': alarms,
  '0031-reviews': reviews,
  '0032-journal': journal,
}
