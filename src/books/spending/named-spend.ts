/** The spend of an idempotency key whose payee was named as a contact. */
import type { Connection, Statement } from '../../storage/database.ts'

/** @property contactId contact that was named. @property isAllowed false: its owner was asked. */
export interface NamedSpend {
  readonly contactId: string
  readonly chain: string | null
  readonly counterparty: string
  readonly isAllowed: boolean
}

const statement: Statement = {
  name: 'spend_named',
  text: `select d.facts ->> 'contact' as contact, d.facts ->> 'chain' as chain, d.facts ->> 'counterparty' as counterparty, d.verdict
    from idempotency i join decision d on d.id = i.decision_id
    where i.principal = $1 and i.key = $2 and d.verdict in ('allow', 'approval_required') and d.facts ->> 'contact' is not null`,
}

/** Finds the allowed or waiting spend that a caller named so, if it named a contact. */
export async function findNamedSpend(
  database: Connection,
  { principal, key }: { principal: string; key: string },
): Promise<NamedSpend | undefined> {
  const [row] = await database.call<{
    contact: string
    chain: string | null
    counterparty: string
    verdict: string
  }>(statement, [principal, key])
  if (row === undefined) return undefined
  const { contact: contactId, chain, counterparty, verdict } = row
  return { contactId, chain, counterparty, isAllowed: verdict === 'allow' }
}
