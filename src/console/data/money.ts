/** Balances, agents with their budgets, and approvals. Shared by the pages. */
import type { Agent, Approval, Decision } from '../../client/operations.ts'
import { bursar } from './gateway.ts'
import { resource, resourceById } from './resource.ts'

const moves = ['transfer.', 'deposit.', 'relay.', 'card.', 'order.', 'purchase.', 'payout.', 'wallet.']
const spends = ['decision.', 'approval.', 'key.', ...moves]

export const wallet = resource(() => bursar.wallets.get(), moves)
export const portfolio = resource(
  () => bursar.investing.portfolio(),
  ['order.', 'deposit.', 'card.', 'payout.'],
)
export const accounts = resource(() => bursar.banking.list(), ['deposit.'])
/** People and companies that the account pays out to. */
export const recipients = resource(() => bursar.banking.recipients.list({ limit: 100 }), ['payout.'])
export const cards = resource(() => bursar.cards.list(), ['card.'])
export const agents = resource(() => readKeys({}), spends)
/** Agents and API keys that were revoked. They stay readable. */
export const endedAgents = resource(() => readKeys({ status: 'revoked' }), ['key.'])
export const ownerCap = resource(() => bursar.agents.policy.get(), spends)
/** Pending ones are read by themselves: however many were decided or withdrawn since, none is pushed out of sight. */
export const approvals = resource(async () => {
  const [recent, pending] = await Promise.all([bursar.approvals.list({ limit: 100 }), readPending()])
  const waits = new Set(pending.map(({ approvalId }) => approvalId))
  return { approvals: [...pending, ...recent.approvals.filter(({ approvalId }) => !waits.has(approvalId))] }
}, ['approval.'])

/** More than these are not for a person to read. */
const MAX_PENDING = 500

async function readPending(): Promise<readonly Approval[]> {
  const read: Approval[] = []
  for await (const approval of bursar.approvals.list({ status: 'pending', limit: 100 })) {
    read.push(approval)
    if (read.length >= MAX_PENDING) break
  }
  return read
}

/** Keys of a run may be many, and are newer than the agent above them, which must not be missing. */
const MAX_KEYS = 500

/** @property isWhole false: there are more. */
interface Keys {
  readonly keys: readonly Agent[]
  readonly isWhole: boolean
}

async function readKeys(filter: { readonly status?: 'revoked' }): Promise<Keys> {
  const keys: Agent[] = []
  for await (const key of bursar.agents.keys.list({ ...filter, limit: 100, include: 'api_keys' })) {
    keys.push(key)
    if (keys.length >= MAX_KEYS) return { keys, isWhole: false }
  }
  return { keys, isWhole: true }
}

/** Requests for money. */
export const requests = resource(() => bursar.requests.list({ limit: 100 }), ['request.'])
/** People who share the account, and open invitations. */
export const people = resource(() => bursar.people.list({}), ['person.'])

/** Names for payees. */
export const contacts = resource(() => bursar.contacts.list({}), ['contact.', 'transfer.', 'payout.'])

/** Payments that are made again and again. More than these have mostly ended. */
export const schedules = resource(
  () => bursar.schedules.list({ limit: 100 }),
  ['schedule.', 'key.', 'contact.'],
)

/** The newest entries; the activity page reads its own pages. */
export const latestActivity = resource(
  () => bursar.activity.list({ limit: 8 }),
  [...moves, 'decision.', 'contact.'],
)

/** What moved in a month. It is read anew when it is asked for, not after each payment: it may be long. */
export const statementById = resourceById((period) => bursar.statements.get({ period }))

export const agentById = resourceById((id) => bursar.agents.keys.get({ id }), spends)
/** Never loads. */
const noAgent = resource(() => new Promise<Agent>(() => {}), [])

/** The agent of an approval; a person's own payment has none. */
export function findAgent(agentId: string | null) {
  return agentId === null ? noAgent : agentById(agentId)
}

/** An agent with all keys below it. */
export const treeById = resourceById((id) => bursar.agents.keys.tree({ id }), spends)
export const usageById = resourceById((id) => bursar.agents.keys.usage({ id }), spends)
export const approvalById = resourceById((id) => bursar.approvals.get({ id }), ['approval.', 'contact.'])
/** The newest decisions on a key's spends. */
export const decisionsById = resourceById(
  (keyId) => bursar.agents.decisions({ keyId, limit: 100 }),
  ['decision.', 'approval.', ...moves],
)
/** One decision, whatever its age; undefined if there is none. */
export const decisionById = resourceById(
  async (decisionId) => {
    const { decisions } = await bursar.agents.decisions({ decisionId })
    return decisions[0]
  },
  ['decision.'],
)

/** The rules that a decision evaluated. */
export const rulesById = resourceById((id) => bursar.agents.rules({ id }), ['decision.'])

const noDecision = resource(async (): Promise<Decision | undefined> => undefined, [])

/** The decision of an approval; a change has none. */
export function findDecision(decisionId: string | null) {
  return decisionId === null ? noDecision : decisionById(decisionId)
}

/** The owner as a customer of the bank; its pages are secrets of the owner and are read anew each time. */
export const bankCustomer = resource(() => bursar.banking.customer.get())

/** The recourse of a payment, by the payment's id; null without one. */
export const recourseByPayment = resourceById(
  async (objectId) => {
    const { recourse } = await bursar.recourse.list({ objectId, limit: 1 })
    const [listed] = recourse
    return listed === undefined ? null : bursar.recourse.get({ id: listed.recourseId })
  },
  ['recourse.'],
)
