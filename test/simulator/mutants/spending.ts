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
        text: '        and (q.daily_max is null or u.used_micros <= q.daily_max - q.usd_micros - v_aside)\n',
        by: '',
      },
    ],
  },
  {
    name: 'path-uncounted',
    attack: 'An agent gives its whole budget to ten others: what they spend is not counted on it.',
    functions: [
      {
        file: decide,
        text: "    if v_path <> '{}' then\n      insert into budget_usage",
        by: '    if false then\n      insert into budget_usage',
      },
    ],
  },
  {
    name: 'revocation-spares-children',
    attack: 'An agent that is about to be revoked gives its budget to another one, which goes on.',
    functions: [
      {
        file: sql('identity/keys_below'),
        text: "update access_key k set status = 'revoked'",
        by: 'update access_key k set status = k.status',
      },
      { file: sql('spending/path_state'), text: "k.status <> 'revoked' and ", by: '' },
      {
        file: sql('spending/path_exceeded'),
        text: "if p.status <> 'active' then",
        by: "if p.status = 'paused' then",
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
    attack:
      'An approval is good for any number of calls: two windows that approve at once send the money twice.',
    functions: [
      {
        file: sql('spending/spend_record'),
        text: "update approval a set used_by = q.decision where a.id = q.approval and a.status = 'approved';",
        by: 'null;',
      },
      {
        file: decide,
        text: ` and i.fingerprint = q.fingerprint
          and exists (select from decision_read(i.decision_id) d where (d.verdict = 'approval_required'
            or q.approval is not null and d.verdict = 'deny' and d.facts->>'approvalId' is distinct from q.approval)));`,
        by: ' and i.fingerprint = q.fingerprint);',
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
    attack: 'A signature of one transfer sends two, each under a key of idempotency of its own.',
    edits: [
      {
        file: 'src/rails/wallets/transfers/send-transfer.ts',
        text: "const id = intent?.transferId ?? newId('tx', at)",
        by: "const id = newId('tx', at)",
      },
      {
        file: 'src/rails/wallets/transfers/authorize-transfer.ts',
        text: "if (intent.usedAt !== null) throw buildRejection('This intent was already used.', key)",
        by: '',
      },
    ],
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
    functions: [
      { file: sql('ledger/balance_change'), text: ' and b.units + v_change >= 0;', by: ';' },
      {
        file: sql('ledger/balance_change'),
        text: '  available_units := null;\nend $$;',
        by: '  available_units := null;\nend $$;\nalter table balance drop constraint balance_units_check;',
      },
    ],
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
  {
    name: 'approval-passes-budgets',
    attack:
      'An owner approves what a key asks, and the call runs although the day of the key is used up meanwhile.',
    functions: [
      {
        file: decide,
        text: `(q.approval is null
    or not approval_overrules(q.approval, q.account, q.key, q.operation, q.fingerprint, o.violations))`,
        by: 'q.approval is null',
      },
    ],
  },
  {
    name: 'approval-of-strangers',
    attack: "Anybody with an account approves the calls of another's keys.",
    edits: [
      {
        file: 'src/books/approvals/approvals.ts',
        text: `    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .where('status', '=', 'pending')`,
        by: `    .where('id', '=', id)
    .where('status', '=', 'pending')`,
      },
    ],
  },
  {
    name: 'idempotency-of-strangers',
    attack: "One account's key of idempotency stops or answers the call of another.",
    functions: [
      { file: decide, text: '  o.replayed := false;', by: "  q.principal := '';\n  o.replayed := false;" },
    ],
  },
  {
    name: 'signature-of-other-terms',
    attack: 'The signature of a transfer of one cent sends another amount, or to another address.',
    edits: [
      {
        file: 'src/rails/wallets/transfers/authorize-transfer.ts',
        text: 'if (intent.payoutId !== payoutId || !isSame(intent.transfer, transfer))',
        by: 'if (intent.payoutId !== payoutId)',
      },
      {
        file: 'src/rails/wallets/transfers/authorize-transfer.ts',
        text: 'if (hash !== intent.operationHash)',
        by: "if (hash === '')",
      },
    ],
  },
  {
    name: 'lock-ignored',
    attack: 'A thief of an open session spends after its owner has locked the account.',
    functions: [{ file: decide, text: "where a.id = q.account and a.status = 'locked'", by: 'where false' }],
    edits: [
      { file: 'src/people/identity/accounts.ts', text: "if (account.status === 'locked')", by: 'if (false)' },
      { file: 'src/kernel/standing.ts', text: "if (status === 'locked')", by: 'if (false)' },
    ],
  },
]
