/** People who share an account, over real HTTP. */
import { expect } from 'vitest'
import { lastCodeTo, newMailbox, type Person, requestJson, signInByEmail } from './people.ts'

/** Allows more than quorums do. */
const policy = {
  perTransaction: { max: '500' },
  dailyBudget: { max: '1000' },
  categories: { allow: ['transfer'] },
}

/** @property id the person, whichever account they act for. */
export interface Member extends Person {
  readonly id: string
  readonly email: string
}

export async function signInAs(origin: string, name: string): Promise<Member> {
  const email = newMailbox(name)
  const person = await signInByEmail(origin, email)
  return { ...person, id: person.accountId, email }
}

/** Invites an address. @returns the code of the mail. */
export async function inviteByMail(
  origin: string,
  owner: Person,
  email: string,
  role: string,
): Promise<string> {
  const { status, body } = await owner.send('POST', '/api/people/invitations', { email, role })
  expect(status, JSON.stringify(body)).toBe(200)
  return lastCodeTo(origin, email)
}

/** Signs a new person in, who joins an account. */
export async function joinAccount(origin: string, owner: Person, role: string): Promise<Member> {
  const person = await signInAs(origin, role)
  const code = await inviteByMail(origin, owner, person.email, role)
  const { status, body } = await person.send('POST', '/api/people/invitations/accept', { code })
  expect(status, JSON.stringify(body)).toBe(200)
  return person
}

/** A developer's key that may transfer. */
export async function newPayer(origin: string, owner: Person) {
  const { body } = await owner.send('POST', '/api/developer/keys', {
    name: 'Payer',
    scopes: ['wallets:transfer', 'wallets:read'],
    policy,
  })
  const authorization = `Bearer ${String(body.key)}`
  const send = (method: string, path: string, sent?: unknown, headers: Record<string, string> = {}) =>
    requestJson(origin, method, path, { body: sent, headers: { authorization, ...headers } })
  return { id: String(body.id), send }
}
