/** A person with a real session: every call is authenticated from the database, as over HTTP. */
import { createHmac } from 'node:crypto'
import { newId } from '../../../src/core/base/ids.ts'
import type { Services } from '../../../src/kernel/context.ts'
import { type Outcome, run } from '../../../src/kernel/run.ts'
import type { Tool } from '../../../src/kernel/tool.ts'
import { createAccount } from '../../../src/people/identity/accounts.ts'
import { authenticateSession, openSession } from '../../../src/people/identity/sessions/sessions.ts'
import { buildCall, noon } from '../../kernel/scene.ts'

/** A signed-in person. @property call runs a tool as them. */
export interface SignedIn {
  readonly accountId: string
  readonly token: string
  call(tool: Tool, input: unknown, how?: { at?: Date; idempotencyKey?: string }): Promise<Outcome>
}

/** Signs a new person in. @param at the time; sessions are valid for twelve hours, tokens for 15 minutes. */
export async function newSignedIn(
  services: Services,
  { guest = false, at = noon }: { guest?: boolean; at?: Date } = {},
): Promise<SignedIn> {
  const account = await createAccount(services, { displayName: 'Ada', guest, at })
  return signInAgain(services, account.id, at)
}

export async function signInAgain(services: Services, accountId: string, at = noon): Promise<SignedIn> {
  const { database, settings } = services
  const { sessionToken: token } = await openSession(
    { database, newId, settings },
    { accountId, method: 'passkey', at },
  )
  return {
    accountId,
    token,
    call: async (tool, input, { at: now = at, idempotencyKey = null } = {}) => {
      const { principal } = await authenticateSession(
        { database, settings },
        { token, tokenHolder: 'client' },
        now,
      )
      return run(tool, buildCall(services, principal, { now, idempotencyKey }), input)
    },
  }
}

/** An authenticator's current code, by RFC 6238. @param secret base32, as in the otpauth URI. */
export function computeTotp(secret: string, at: Date): string {
  const bits = [...secret.replaceAll('=', '')]
    .map((letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0'))
    .join('')
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(Math.floor(at.getTime() / 30_000)))
  const mac = createHmac('sha1', key).update(counter).digest()
  const offset = mac.readUInt8(19) & 15
  return String((mac.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, '0')
}

export function readSecret(otpauthUri: unknown): string {
  return new URL(String(otpauthUri)).searchParams.get('secret') ?? ''
}
