/** Who made the payments of a statement, under which approval, and the decisions on them. */
import { Failure } from '../../core/failures/failure.ts'
import type { Connection, Statement } from '../../storage/database.ts'
import type { AccountStatement, Movement, Payment } from './read-statement.ts'

/** A page for each of more payments is refused: a shorter period has fewer. */
const MAX_PAYMENTS = 500

const makers: Statement = {
  name: 'statement_payers',
  text: `
    select d.id, k.name as agent, a.id as approval_id,
      array(select v.person_id from approval_vote v where v.approval_id = a.id order by v.at, v.person_id) as agreed
    from unnest($2::text[]) known (id) cross join lateral decision_known(known.id) d
      left join access_key k on k.id = d.key_id
      left join lateral (
        select a.id from approval a where a.account_id = $1 and a.status = 'approved' and (a.used_by = d.id or a.decision_id = d.id)
        order by a.id limit 1
      ) a on true
    where d.account_id = $1`,
}

interface Maker {
  readonly id: string
  readonly agent: string | null
  readonly approval_id: string | null
  readonly agreed: readonly string[]
}

type Decision = NonNullable<Payment['decision']> & { readonly decisionId: string }

/** @param showDecisions by their ids, in no order. @throws Failure `invalid_request` when there are too many. */
export async function readPayments(
  {
    database,
    showDecisions,
  }: {
    readonly database: Connection
    readonly showDecisions: (ids: readonly string[]) => Promise<readonly Decision[]>
  },
  { accountId, movements }: Pick<AccountStatement, 'accountId' | 'movements'>,
): Promise<Payment[]> {
  const paid = movements.filter(({ direction }) => direction === 'out')
  if (paid.length > MAX_PAYMENTS)
    throw new Failure('invalid_request', `It has more than ${MAX_PAYMENTS} payments, each with a page.`, {
      hint: 'Ask for fewer days, or without `pages`.',
    })
  const ids = [...new Set(paid.flatMap(({ decisionId }) => decisionId ?? []))]
  const [decisions, rows] = await Promise.all([
    showDecisions(ids),
    database.call<Maker>(makers, [accountId, ids]),
  ])
  const decided = new Map(decisions.map((decision) => [decision.decisionId, decision]))
  const made = new Map(rows.map((row) => [row.id, row]))
  return paid.map(({ id, asset, decisionId }: Movement) => {
    const [maker, decision] = [made.get(decisionId ?? ''), decided.get(decisionId ?? '')]
    return {
      id,
      asset,
      agent: maker?.agent ?? null,
      approvalId: maker?.approval_id ?? null,
      agreed: [...(maker?.agreed ?? [])],
      decision:
        decision === undefined
          ? null
          : {
              at: decision.at,
              operation: decision.operation,
              verdict: decision.verdict,
              policyVersion: decision.policyVersion,
              policyHash: decision.policyHash,
              verified: decision.verified,
              sequence: decision.sequence,
              hash: decision.hash,
            },
    }
  })
}
