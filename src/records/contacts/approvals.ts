/** Approvals with the contact that they pay. */
import type { z } from 'zod'
import { type approvalView, viewApproval } from '../../books/approvals/approval-view.ts'
import { type Approval, listAgreements } from '../../books/approvals/approvals.ts'
import { findFundings } from '../../books/spending/funding-view.ts'
import { namePayees, readInputPayee } from './names.ts'
import { isStill, namedPayee } from './payee.ts'
import { type Keeping, listContacts } from './store.ts'

/** Views approvals of one account. One whose contact is another payee by now says so: approving it pays nobody. */
export async function viewApprovals(
  keeping: Keeping,
  accountId: string,
  approvals: readonly Approval[],
  { isForPerson }: { isForPerson: boolean },
): Promise<z.input<typeof approvalView>[]> {
  const found = await listAgreements(
    keeping.database,
    approvals.map(({ id }) => id),
  )
  const fundings = await findFundings(
    keeping.database,
    approvals.flatMap(({ status, decisionId }) =>
      status === 'pending' && decisionId !== null ? [decisionId] : [],
    ),
  )
  const views = approvals.map((approval) => {
    const agreements = found.get(approval.id) ?? []
    const funding = approval.decisionId === null ? undefined : fundings.get(approval.decisionId)
    const view = viewApproval(approval, { agreements, isForPerson })
    return { approval, view: funding === undefined ? view : { ...view, funding } }
  })
  const isAny = views.some(({ view }) => readInputPayee(view.input) !== null)
  const contacts = isAny ? await listContacts(keeping, accountId) : []
  const names = namePayees(contacts)
  return views.map(({ approval, view }) => {
    const payee = namedPayee.nullable().parse(approval.payee)
    if (payee === null) {
      const name = names.nameOf(readInputPayee(view.input))
      return { ...view, contact: name === null ? null : { name, isChanged: false } }
    }
    const contact = contacts.find(({ id }) => id === payee.contactId)
    return { ...view, contact: { name: contact?.name ?? null, isChanged: !isStill(contact, payee) } }
  })
}

export async function viewNamedApproval(
  keeping: Keeping & { readonly principal: { readonly kind: string } },
  approval: Approval,
): Promise<z.input<typeof approvalView>> {
  const [view] = await viewApprovals(keeping, approval.accountId, [approval], {
    isForPerson: keeping.principal.kind === 'session',
  })
  if (view === undefined) throw new Error(`${approval.id} has no view`)
  return view
}
