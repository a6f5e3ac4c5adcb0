import { z } from 'zod'
import type { Account } from '../../src/core/base/principal.ts'
import { type Context, findPerson } from '../../src/kernel/context.ts'
import { requireRecentProof } from '../../src/kernel/gates/step-up.ts'
import { recordChange } from '../../src/kernel/record-change.ts'
import { defineTool } from '../../src/kernel/tool.ts'
import { displayNameInput } from '../../src/people/identity/display-name.ts'
import {
  authenticationResponse,
  passkeyResponse,
  registrationResponse,
} from '../../src/people/identity/passkeys/passkey-response.ts'
import { assertPasskey, loginOptions } from '../../src/people/identity/passkeys/passkeys.ts'
import { registerPasskey, registrationOptions } from '../../src/people/identity/passkeys/register-passkey.ts'
import { sendSecurityNotice } from '../../src/people/identity/security-notices.ts'
import {
  continueSession,
  signIn,
  unchangedSessionAnswer,
} from '../../src/people/identity/sessions/session-answer.ts'
import { findAccount } from '../../src/people/identity/store.ts'
import type { WalletOwner } from '../../src/providers/chain/port.ts'
import { requireIdleWallet } from '../../src/rails/wallets/escrow/escrow.ts'
import { openWallet } from '../../src/rails/wallets/open-wallet.ts'
import { transferOwnership } from '../../src/rails/wallets/signing/signer-store.ts'

const request = z
  .strictObject({
    action: z.enum(['register', 'login']).describe('Register a passkey, or sign in with one.'),
    credential: passkeyResponse
      .nullish()
      .describe('Result of `navigator.credentials` as JSON. Null or absent: get a challenge.'),
    challengeId: z.string().max(64).optional().describe('Challenge that the credential was made for.'),
    displayName: displayNameInput
      .optional()
      .describe('Display name of a new account, or of a guest who becomes a person.'),
  })
  .transform(({ credential, ...rest }, context) => {
    const made = rest.action === 'register' ? registrationResponse.nullish().safeParse(credential) : null
    const used = rest.action === 'login' ? authenticationResponse.nullish().safeParse(credential) : null
    for (const { path, message } of [...(made?.error?.issues ?? []), ...(used?.error?.issues ?? [])])
      context.addIssue({ code: 'custom', path: ['credential', ...path], message })
    return { ...rest, made: made?.data ?? null, used: used?.data ?? null }
  })

export default defineTool({
  name: 'auth.webauthn',
  title: 'Passkey',
  summary: 'Sign in with a passkey, or register one: first a challenge, then a session.',
  description:
    'Without a credential the answer is {challengeId, publicKey}: options for navigator.credentials, for one use within five minutes. With a credential it is a session. Without a session a passkey creates an account, with one it is added. The first passkey owns the wallet on chain if its algorithm is ES256; with any other, the gateway holds the wallet and verifies the signatures itself.',
  route: 'POST /api/auth/webauthn',
  who: 'public',
  effect: 'write',
  proof: 'conditional',
  stops: true,
  opensSession: true,
  input: request,
  output: z.strictObject({
    challengeId: z.string().optional().describe('`chal_…`; returned with `publicKey` by the first call.'),
    publicKey: z
      .looseObject({})
      .optional()
      .describe('WebAuthn options as JSON, for PublicKeyCredential.parse…OptionsFromJSON.'),
    ...unchangedSessionAnswer.partial().shape,
  }),
  failures: [
    'unauthenticated',
    'step_up_required',
    'wallet_busy',
    'conflict',
    'account_locked',
    'provider_unavailable',
  ],
  example: { action: 'register', credential: null, displayName: 'Ada' },
  run: async (context, { action, made, used, challengeId, displayName }) => {
    const { now: at } = context
    if (action === 'login') {
      if (used === null) return loginOptions(context, at)
      const { accountId } = await assertPasskey(context, { credential: used, challengeId, now: at })
      return signInOwner(context, accountId)
    }
    const signedIn = findPerson(context)
    if (signedIn !== null) requireRecentProof(context)
    const account = signedIn === null ? null : await requireIdentity(context, signedIn.person.id)
    if (signedIn !== null && signedIn.account.id === account?.id) await requireIdleWallet(context, account.id)
    if (made === null) return registrationOptions(context, { account, displayName, at })
    const registration = { credential: made, challengeId, account, displayName, at }
    const { account: person, passkeyId, point } = await registerPasskey(context, registration)
    const owner: WalletOwner = point === null ? { kind: 'gateway' } : { kind: 'passkey', ...point }
    const added = {
      accountId: signedIn?.account.id ?? person.id,
      action: 'factor.added',
      object: { kind: 'passkey', id: passkeyId },
    }
    if (signedIn !== null) {
      // A factor of somebody who acts for another account signs for no wallet.
      if (signedIn.account.id === person.id) await transferOwnership(context.database, person.id, owner)
      await sendSecurityNotice(context, { accountId: person.id, notice: 'passkey_added', at })
      await recordChange(context, added)
      // Adding a passkey keeps the current session and its second factor.
      const shown = { ...signedIn.account, guest: person.guest, displayName: person.displayName }
      return continueSession(context.settings, { ...signedIn, account: shown, at })
    }
    await openWallet(context, { accountId: person.id, owner, at })
    const session = await signIn(context, { account: person, method: 'passkey', at })
    await recordChange(context, added)
    return session
  },
})

/** Reveals a lock only here, after the caller has proved ownership. */
async function signInOwner(context: Context, accountId: string) {
  const account = await requireIdentity(context, accountId)
  return signIn(context, { account, method: 'passkey', at: context.now })
}

/** The own account of a person, whichever account they act for. */
async function requireIdentity({ database }: Context, personId: string): Promise<Account> {
  const account = await findAccount(database, personId)
  if (account === undefined) throw new Error(`a person has no account: ${personId}`)
  return account
}
