/** Defects of the reserve: budgets, idempotency, ends of spends, stopped keys, approvals. */
import type { Mutant } from './mutant.ts'

const sql = (name: string) => `src/storage/sql/functions/${name}.sql`
const decide = sql('spending/spend_decide')
const resolve = sql('spending/spend_resolve')

export const spendingMutants: readonly Mutant[] = [
  {
    name: 'day-budget-unchecked',
    attack: 'An agent spends beyond its day: the budget is counted and not checked.',
    functions: [
      {
        file: decide,
        text: '        and (q.daily_max is null or u.used_micros <= q.daily_max - q.usd_micros)\n',
        by: '',
      },
    ],
  },
  {
    name: 'owner-cap-ignored',
    attack: 'An agent asks for a second key: each has its own day, and the cap over all keys is not checked.',
    functions: [
      {
        file: decide,
        text: 'if v_owner_budgets is not null then\n        o.violations',
        by: 'if false then\n        o.violations',
      },
    ],
  },
  {
    name: 'idempotency-forgotten',
    attack: 'A client that repeats a call after a lost answer pays twice.',
    functions: [{ file: decide, text: 'if q.idempotency_key is not null then', by: 'if false then' }],
  },
  {
    name: 'revocation-ignored',
    attack: 'A stolen key spends after its owner has revoked it.',
    functions: [
      { file: sql('identity/authenticate'), text: " and k.status <> 'revoked'", by: '' },
      { file: decide, text: "v_status is null or v_status = 'revoked' or", by: 'v_status is null or' },
      {
        file: decide,
        text: "and v_status = 'active' and v_owner_budgets is null",
        by: 'and v_owner_budgets is null',
      },
    ],
  },
  {
    name: 'pause-ignored',
    attack: 'An agent spends after "Stop all".',
    functions: [
      {
        file: decide,
        text: "if v_status = 'paused' and not o.violations @>",
        by: 'if false and not o.violations @>',
      },
    ],
  },
  {
    name: 'spend-ended-twice',
    attack: 'A settled spend is released too: money that has left is available again.',
    functions: [{ file: resolve, text: "elsif r.status <> 'reserved' then", by: 'elsif false then' }],
  },
  {
    name: 'release-gives-double',
    attack: 'A failed spend gives its budget back twice: the key may spend the difference.',
    functions: [
      {
        file: resolve,
        text: 'update budget_usage set used_micros = used_micros - v_unused',
        by: 'update budget_usage set used_micros = greatest(used_micros - 2 * v_unused, 0)',
      },
    ],
  },
  {
    name: 'approval-used-again',
    attack: 'An approval of one call lets another pass.',
    functions: [
      {
        file: sql('spending/spend_record'),
        text: "update approval a set used_by = q.decision where a.id = q.approval and a.status = 'approved';",
        by: 'null;',
      },
    ],
  },
  {
    name: 'settled-money-stays',
    attack: 'What was paid is available again: the account spends it twice.',
    functions: [
      {
        file: resolve,
        text: "v_destination := case p_status when 'settled' then p_destination else r.source end;",
        by: 'v_destination := r.source;',
      },
    ],
  },
  {
    name: 'hold-in-no-balance',
    attack: 'Held money is in no balance: the books lose it.',
    functions: [
      {
        file: sql('spending/spend_record'),
        text: 'perform balance_change(v_helds, v_assets, v_units);',
        by: '',
      },
    ],
  },
  {
    name: 'signature-used-again',
    attack: 'A signature of one transfer is booked as two.',
    functions: [
      {
        file: sql('wallets/transfer_insert'),
        text: ' and i.account_id = p_accounts[v_place] and i.used_at is null;',
        by: ' and i.account_id = p_accounts[v_place];',
      },
    ],
  },
  {
    name: 'balance-below-zero',
    attack: 'An account spends money that it does not have.',
    functions: [{ file: sql('ledger/balance_change'), text: ' and b.units + v_change >= 0;', by: ';' }],
  },
  {
    name: 'transactions-are-none',
    attack: 'A crash leaves a part of what belongs together.',
    edits: [
      { file: 'src/storage/database-on-pool.ts', text: "await session.query('begin', [])", by: '' },
      {
        file: 'src/storage/database-on-pool.ts',
        text: "const { command } = await session.query('commit', [])",
        by: "const command: string = 'COMMIT'",
      },
      {
        file: 'src/storage/database-on-pool.ts',
        text: "await session.query('rollback', [])",
        by: 'await Promise.resolve()',
      },
    ],
  },
  {
    name: 'statements-after-the-end',
    attack: 'A statement of a transaction that is over runs in the transaction of another account.',
    edits: [
      {
        file: 'src/storage/database-on-pool.ts',
        text: '      isOver\n        ?',
        by: '      false\n        ?',
      },
      {
        file: 'tools/agents/pause.ts',
        text: 'cancelStoppedOrders({ ...context, database }, account.id)',
        by: 'cancelStoppedOrders(context, account.id)',
      },
    ],
  },
]
