/**
 * Contacts in spend policies: an owner writes and reads `contact:NAME`, and a policy keeps the contact's id. So a rule stays with its
 * contact, whatever the contact is called, and nobody gets the rule of another one with their name.
 */
import { z } from 'zod'
import { foldName, readContactName } from '../../policies/contact-names.ts'
import type { Policy } from '../../policies/policy.ts'
import { Failure } from '../core/failures/failure.ts'
import { findContactsByName, type Keeping, listContacts } from '../records/contacts/store.ts'
import { type Context, requireCaller } from './context.ts'
import { mayKnowContacts, requireKnowing } from './resolve-payee.ts'
import type { Call, Tool } from './tool.ts'

/** Responses nest trees of keys; nothing deeper holds a policy. */
const MAX_DEPTH = 40

type Replace = (entry: string) => string

const entries = z.array(z.unknown())
const record = z.record(z.string(), z.unknown())

/** Replaces the entries of `policy.counterparties` everywhere in a value. */
function mapPayees(value: unknown, replace: Replace, depth = 0): unknown {
  if (depth > MAX_DEPTH || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((one) => mapPayees(one, replace, depth + 1))
  const members = Object.entries(value).map(([name, member]) => [
    name,
    name === 'policy' ? mapPolicy(member, replace) : mapPayees(member, replace, depth + 1),
  ])
  return Object.fromEntries(members)
}

function mapPolicy(policy: unknown, replace: Replace): unknown {
  const { data } = record.safeParse(policy)
  const lists = record.safeParse(data?.counterparties).data
  if (data === undefined || lists === undefined) return policy
  const map = (list: unknown) =>
    entries.safeParse(list).data?.map((entry) => (typeof entry === 'string' ? replace(entry) : entry)) ?? list
  const counterparties = Object.entries(lists).map(([name, list]) => [name, map(list)])
  return { ...data, counterparties: Object.fromEntries(counterparties) }
}

/**
 * Puts the ids of contacts in place of their names in the policy of an input.
 * @throws Failure `not_found` for a name that no contact has, `insufficient_scope`.
 */
export async function keepContactIds(
  context: Keeping & Pick<Context, 'principal'>,
  input: unknown,
): Promise<unknown> {
  const names = new Set<string>()
  mapPayees(input, (entry) => {
    const name = readContactName(entry)
    if (name !== null) names.add(foldName(name))
    return entry
  })
  if (names.size === 0) return input
  const principal = requireCaller(context)
  requireKnowing(principal)
  const ids = await findContactIds(context, { accountId: principal.account.id, names: [...names] })
  return mapPayees(input, (entry) => ids.get(foldName(readContactName(entry) ?? '')) ?? entry)
}

/** {@link keepContactIds} for the policy of a key that another key makes. @throws Failure `not_found`. */
export async function keepPolicyContacts(
  keeping: Keeping,
  { accountId, policy }: { accountId: string; policy: Policy | null },
): Promise<Policy | null> {
  const { allow, deny, ...others } = policy?.counterparties ?? {}
  const names = [...(allow ?? []), ...(deny ?? [])].flatMap((entry) => readContactName(entry) ?? [])
  if (policy === null || names.length === 0) return policy
  const ids = await findContactIds(keeping, { accountId, names: [...new Set(names)] })
  const keep = (list: readonly string[]) =>
    list.map((entry) => ids.get(readContactName(entry) ?? '') ?? entry)
  return {
    ...policy,
    counterparties: {
      ...others,
      ...(allow === undefined ? {} : { allow: keep(allow) }),
      ...(deny === undefined ? {} : { deny: keep(deny) }),
    },
  }
}

/** Finds the ids of contacts by their folded names. @throws Failure `not_found`. */
async function findContactIds(
  keeping: Keeping,
  { accountId, names }: { accountId: string; names: readonly string[] },
): Promise<ReadonlyMap<string, string>> {
  const found = await findContactsByName(keeping, { accountId, names })
  const ids = new Map(found.map(({ id, name }) => [foldName(name), id]))
  const unknown = names.find((name) => !ids.has(name))
  if (unknown === undefined) return ids
  throw new Failure('not_found', 'The policy names a contact that you do not have.', {
    hint: 'GET /api/contacts lists them; add it first, or send its address.',
  })
}

/** The call with the ids of contacts in its policy. Its fingerprint has their names, so that a repeat finds its answer after a renaming. */
export function keepingContactIds(tool: Pick<Tool, 'policies' | 'decode'>, call: Call, raw: unknown): Call {
  if (tool.policies !== 'both') return call
  return {
    ...call,
    run: async (context, reserved) => {
      const known = await keepContactIds(context, raw)
      return (known === raw ? call : tool.decode(known)).run(context, reserved)
    },
  }
}

/** Puts names in place of the ids of contacts in the policies of a response. The id of a contact that was removed stays. */
export async function showContactNames<Body extends Record<string, unknown>>(
  context: Keeping & Pick<Context, 'principal'>,
  { policies }: Pick<Tool, 'policies'>,
  body: Body,
): Promise<Record<string, unknown>> {
  const { principal } = context
  if (policies === undefined || principal.kind === 'public' || !mayKnowContacts(principal)) return body
  let isAny = false
  mapPayees(body, (entry) => {
    isAny ||= entry.startsWith('con_')
    return entry
  })
  if (!isAny) return body
  const contacts = await listContacts(context, principal.account.id)
  const names = new Map(contacts.map(({ id, name }) => [id, `contact:${name}`]))
  return record.parse(mapPayees(body, (entry) => names.get(entry) ?? entry))
}
