/**
 * Payees by name: `contact:NAME` becomes what the contact has, once, before a call is decoded. Policies, approvals, schedules and
 * fingerprints see that alone, and what waits is made only while the contact still has it.
 */
import { foldName, readContactName } from '../../policies/contact-names.ts'
import type { Policy } from '../../policies/policy.ts'
import type { Scope } from '../../policies/scopes.ts'
import { findNamedSpend } from '../books/spending/named-spend.ts'
import type { AccountPrincipal } from '../core/base/principal.ts'
import { Failure } from '../core/failures/failure.ts'
import {
  listPayees,
  listPayeesOn,
  type NamedPayee,
  readPayee,
  requireSamePayee,
} from '../records/contacts/payee.ts'
import { type Contact, findContactsByName, isNamed, listContacts } from '../records/contacts/store.ts'
import type { Context } from './context.ts'
import { idempotencyOwner } from './fingerprint.ts'
import type { Tool } from './tool.ts'

type Resolving = Pick<Context, 'database' | 'settings' | 'chains' | 'principal' | 'idempotencyKey' | 'payee'>

/** @property payee what a contact stood for; null: the call names none. */
export interface ResolvedInput {
  readonly raw: unknown
  readonly payee: NamedPayee | null
}

/** Scopes of keys that know contacts: one lists them, with the others they are paid. */
const knowing: readonly Scope[] = ['wallets:read', 'wallets:transfer', 'banking:pay']

/**
 * Puts the payee's address in place of a contact's name. A call that waited has it already, and is refused unless the contact still
 * has it; a repeat of an allowed spend keeps what that paid.
 * @throws Failure `not_found` for a name that no contact has, or one that has no address on the chain; `conflict`;
 * `insufficient_scope`.
 */
export async function resolvePayee(
  context: Resolving,
  { payee: path, effect }: Pick<Tool, 'payee' | 'effect'>,
  raw: unknown,
): Promise<ResolvedInput> {
  const { principal } = context
  if (principal.kind === 'public') return { raw, payee: null }
  const accountId = principal.account.id
  if (context.payee !== undefined) {
    await requireSamePayee(context, { accountId, payee: context.payee })
    return { raw, payee: context.payee }
  }
  const [outer, inner] = path?.split('.') ?? []
  const members = inner === undefined ? raw : isRecord(raw) ? raw[outer ?? ''] : undefined
  const member = inner ?? outer
  if (member === undefined || !isRecord(members)) return { raw, payee: null }
  const { [member]: given, chain } = members
  const name = typeof given === 'string' ? readContactName(given) : null
  if (name === null) return { raw, payee: null }
  requireKnowing(principal)
  const named: NamedCall = {
    accountId,
    name,
    kind: member === 'recipientId' ? 'recipient' : 'address',
    chain: typeof chain === 'string' ? chain : undefined,
  }
  const earlier = effect === 'spend' ? await findEarlierPayee(context, named) : undefined
  const payee = earlier ?? (await findPayee(context, named))
  const resolved = { ...members, [member]: payee.value }
  return {
    raw: inner === undefined || !isRecord(raw) ? resolved : { ...raw, [outer ?? '']: resolved },
    payee,
  }
}

/** True for people, and for keys that may read or pay contacts. */
export function mayKnowContacts(principal: AccountPrincipal): boolean {
  return principal.kind !== 'key' || knowing.some((scope) => principal.key.scopes.includes(scope))
}

/** A key that pays nobody learns neither names nor addresses by trying. @throws Failure `insufficient_scope`. */
export function requireKnowing(principal: AccountPrincipal): void {
  if (mayKnowContacts(principal) || principal.kind !== 'key') return
  throw new Failure('insufficient_scope', `The key "${principal.key.name}" lacks wallets:read.`, {
    scopes: ['wallets:read'],
    hint: 'Send the address, or tell the owner: only the owner can grant the scope that reads contacts.',
  })
}

interface NamedCall {
  readonly accountId: string
  readonly name: string
  readonly kind: NamedPayee['kind']
  readonly chain: string | undefined
}

/** What a contact stands for now. @throws Failure `not_found`. */
async function findPayee(
  context: Pick<Context, 'database' | 'settings' | 'chains'>,
  { accountId, kind, name, chain }: NamedCall,
): Promise<NamedPayee> {
  const [contact] = await findContactsByName(context, { accountId, names: [name] })
  if (contact === undefined)
    throw new Failure('not_found', 'You have no contact of this name.', {
      hint: 'GET /api/contacts lists them; only the owner adds one.',
    })
  const { chains } = context
  return readPayee(contact, { kind, chain: chains.resolveName(chain ?? chains.all[0].name) })
}

/** What the same call stood for when it was allowed, or when its owner was asked. @throws Failure `conflict`. */
async function findEarlierPayee(
  context: Resolving,
  { accountId, kind, name }: NamedCall,
): Promise<NamedPayee | undefined> {
  const { database, principal, idempotencyKey: key } = context
  if (key === null || principal.kind === 'public') return undefined
  const earlier = await findNamedSpend(database, { principal: idempotencyOwner(principal), key })
  if (earlier === undefined) return undefined
  const { contactId, chain, counterparty: value, isAllowed } = earlier
  // It was renamed where nobody has the name any more: a caller that made the call anew would pay twice.
  const isOther =
    !(await isNamed(context, { id: contactId, accountId, name })) &&
    (await findContactsByName(context, { accountId, names: [name] })).length > 0
  if (isOther) return undefined
  const payee = { contactId, kind, chain: kind === 'recipient' ? null : chain, value }
  if (!isAllowed) await requireSamePayee(context, { accountId, payee })
  return payee
}

/**
 * A policy with what its contacts have now in place of their ids. The id of a contact that was removed stays, and is nobody's.
 * A policy that was written while policies kept names has names, which are whoever has them.
 */
export async function resolvePolicy(
  context: Pick<Context, 'database' | 'settings'>,
  { accountId, policy, chain }: { accountId: string; policy: Policy | null; chain: string | null },
): Promise<Policy | null> {
  const { allow, deny, ...others } = policy?.counterparties ?? {}
  const isContact = (entry: string) => entry.startsWith('con_') || readContactName(entry) !== null
  if (policy === null || ![...(allow ?? []), ...(deny ?? [])].some(isContact)) return policy
  const known = await listContacts(context, accountId)
  const contacts = new Map(
    known.flatMap((contact) => [
      [contact.id, contact] as const,
      [`contact:${foldName(contact.name)}`, contact] as const,
    ]),
  )
  const replace = (list: readonly string[], expand: (contact: Contact) => readonly string[]) =>
    list.flatMap((entry) => {
      const contact = contacts.get(entry)
      return contact === undefined ? [entry] : expand(contact).map((payee) => payee.toLowerCase())
    })
  return {
    ...policy,
    counterparties: {
      ...others,
      ...(allow === undefined ? {} : { allow: replace(allow, (contact) => listPayeesOn(contact, chain)) }),
      ...(deny === undefined ? {} : { deny: replace(deny, listPayees) }),
    },
  }
}

/** Ancestors of a key with their policies resolved. */
export function resolveAncestors<Ancestor extends { readonly policy: Policy | null }>(
  ancestors: readonly Ancestor[],
  resolve: (policy: Policy | null) => Promise<Policy | null>,
): Promise<readonly Ancestor[]> {
  return Promise.all(ancestors.map(async (one) => ({ ...one, policy: await resolve(one.policy) })))
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
