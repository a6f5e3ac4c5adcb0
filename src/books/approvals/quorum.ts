/** The quorums of an account: how many different people must agree to a payment, by its amount. */
import { countNeeded, type Quorum, quorums } from '../../../policies/quorum.ts'
import { toUsdMicros } from '../../../policies/usd.ts'
import { Failure } from '../../core/failures/failure.ts'
import { type Connection, callForRow, type Statement } from '../../storage/database.ts'

const decidingStatement: Statement = {
  name: 'people_deciding',
  text: `select count(*)::int as people from people_deciding($1) where person_id is distinct from $2::text`,
}

/** Counts the people who may decide on an account's approvals. @param without a person who does not count. */
async function countDeciding(
  database: Connection,
  accountId: string,
  without: string | null = null,
): Promise<number> {
  const { people } = await callForRow<{ people: number }>(database, decidingStatement, [accountId, without])
  return people
}

/** @throws Failure `conflict` when there are fewer people who may decide than some amount needs. */
export async function requireEnoughPeople(
  database: Connection,
  accountId: string,
  steps: readonly Quorum[],
): Promise<void> {
  const needed = Math.max(0, ...steps.map(({ count }) => count))
  if (needed === 0) return
  const people = await countDeciding(database, accountId)
  if (people >= needed) return
  throw new Failure(
    'conflict',
    `${needed} people must agree to some payments, and only ${people} could: owners and approvers.`,
    {
      reason: 'quorum',
      hint: 'Invite another owner or approver (POST /api/people/invitations), or lower the count in PUT /api/agents/policy {"approvals": …}.',
    },
  )
}

/** Reads an account's quorums. */
export async function readQuorums({ kysely }: Connection, accountId: string): Promise<readonly Quorum[]> {
  const row = await kysely
    .selectFrom('account')
    .select('quorums')
    .where('id', '=', accountId)
    .executeTakeFirstOrThrow()
  return quorums.parse(row.quorums ?? [])
}

const raiseStatement: Statement = {
  name: 'approvals_raise_needed',
  text: `update approval a set needed = greatest(a.needed, quorum_needed(a.account_id, (d.facts ->> 'usdMicros')::bigint))
    from decision d where a.account_id = $1 and a.status = 'pending' and d.id = a.decision_id`,
}

const reopenStatement: Statement = {
  name: 'approvals_reopen',
  // Its call is still to come: nothing was paid under it.
  text: `update approval a set status = 'pending', decided_at = null
    from decision d where a.account_id = $1 and a.status = 'approved' and a.awaits_caller and a.used_by is null
      and a.answer is null and a.problem is null and d.id = a.decision_id
      and quorum_needed(a.account_id, (d.facts ->> 'usdMicros')::bigint) > a.needed`,
}

/**
 * Sets an account's quorums. What waits already needs as many people as it would now, and never fewer than it did; what was agreed to
 * and awaits its call waits for the others again.
 */
export async function setQuorums(
  database: Connection,
  { accountId, steps }: { accountId: string; steps: readonly Quorum[] },
): Promise<void> {
  await database.kysely
    .updateTable('account')
    .set({ quorums: JSON.stringify(steps) })
    .where('id', '=', accountId)
    .execute()
  await database.call(reopenStatement, [accountId])
  await database.call(raiseStatement, [accountId])
}

/**
 * The others who must agree to a person's own payment. @throws Failure `conflict` when there are not as many.
 */
export async function requireOthers(
  database: Connection,
  {
    accountId,
    personId,
    steps,
    usdMicros,
  }: {
    accountId: string
    personId: string
    steps: readonly Quorum[]
    usdMicros: bigint | null
  },
): Promise<void> {
  const needed = countNeeded(steps, usdMicros)
  const others = await countDeciding(database, accountId, personId)
  if (others >= needed) return
  throw new Failure(
    'conflict',
    `${needed} other people must agree to this payment, and the account has only ${others} who could. Nothing was sent.`,
    {
      reason: 'quorum',
      hint: 'Nobody agrees to their own payment: invite another owner or approver, or let an agent ask for it.',
    },
  )
}

/** Orders steps by amount. */
export function sortQuorums(steps: readonly Quorum[]): readonly Quorum[] {
  return [...steps].sort((one, other) => (toUsdMicros(one.above) < toUsdMicros(other.above) ? -1 : 1))
}
