/** Funded accounts with signers of each kind, on a gateway's services without a transport. */
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { z } from 'zod'
import { balances } from '../../../src/books/ledger/balances.ts'
import type { Principal } from '../../../src/core/base/principal.ts'
import type { Context, Services } from '../../../src/kernel/context.ts'
import { run } from '../../../src/kernel/run.ts'
import type { Tool } from '../../../src/kernel/tool.ts'
import { findKey } from '../../../src/people/identity/store.ts'
import { bookDeposit, demoFunds, openWallet } from '../../../src/rails/wallets/open-wallet.ts'
import { findWallet } from '../../../src/rails/wallets/store.ts'
import createAgent from '../../../tools/agents/keys/create.ts'
import webauthn from '../../../tools/auth/webauthn.ts'
import createDeveloperKey from '../../../tools/developer/keys/create.ts'
import registerSigner from '../../../tools/wallets/signers/create.ts'
import intentTool from '../../../tools/wallets/transfer-intent.ts'
import { type Agent, newAgent } from '../../journeys/agent.ts'
import { buildCall, newPerson, noon, origin } from '../../kernel/scene.ts'
import { type Authenticator, newAuthenticator } from '../../people/identity/authenticator.ts'
import { passkeyScene } from '../../people/identity/passkey-scene.ts'

export const payee = `0x${'1'.repeat(40)}`

/** A policy that allows the spends of these tests. */
const policy = {
  perTransaction: { max: '500' },
  dailyBudget: { max: '5000' },
  categories: { allow: ['transfer', 'gasless'] },
}

export const intentAnswer = z.looseObject({
  intentId: z.string(),
  hash: z.string(),
  challenge: z.string(),
  typedData: z.looseObject({
    domain: z.record(z.string(), z.unknown()),
    types: z.record(z.string(), z.array(z.object({ name: z.string(), type: z.string() }))),
    primaryType: z.string(),
    message: z.record(z.string(), z.unknown()),
  }),
  expiresAt: z.string(),
})

export type Intent = z.output<typeof intentAnswer>

/** Signs an intent in one of the three ways. */
export type Sign = (intent: Intent) => Promise<string>

/** A device's assertion over an intent. @param challenge overrides the intent's. */
export function signAssertion(device: Authenticator, challenge: string): string {
  const credential = device.get({ challenge, rpId: 'bursar.example', userVerification: 'required' })
  return Buffer.from(JSON.stringify(credential)).toString('base64url')
}

/** Operations of these tests on a gateway's services. */
export function walletScene(services: Services) {
  const { database } = services
  const call = async (tool: Tool, as: Principal, input: unknown, changes: Partial<Context> = {}) =>
    (await run(tool, buildCall(services, as, changes), input)).body

  /** An account with the demo funds, and without a signer. */
  const newOwner = async () => {
    const owner = await newPerson(database)
    await openWallet(services, { accountId: owner.account.id, at: noon })
    await fund(owner.account.id)
    return owner
  }
  /** An account created with a passkey, with the demo funds. */
  const newPasskeyOwner = async () => {
    const scene = passkeyScene(services)
    const owner = await scene.asPerson((await scene.register()).sessionToken)
    await fund(owner.account.id)
    const sign: Sign = async ({ challenge }) => signAssertion(scene.device, challenge)
    return { owner, sign, device: scene.device }
  }
  const fund = async (accountId: string) => {
    const address = await findWallet(database, accountId)
    if (address === undefined) throw new Error('the account has no wallet')
    await bookDeposit(services, { accountId, funds: demoFunds, reference: accountId, at: services.clock() })
    await services.chain.mint(demoFunds.map(({ asset, units }) => ({ token: asset, to: address, units })))
  }
  const addPasskey = async (as: Principal): Promise<{ device: Authenticator; sign: Sign }> => {
    const device = newAuthenticator(origin)
    const { challengeId, publicKey } = await call(webauthn, as, { action: 'register' })
    const credential = device.create(publicKey)
    await call(webauthn, as, { action: 'register', challengeId, credential })
    return { device, sign: async ({ challenge }) => signAssertion(device, challenge) }
  }
  const addEoa = async (as: Principal): Promise<{ address: `0x${string}`; sign: Sign }> => {
    const account = privateKeyToAccount(generatePrivateKey())
    const signTyped: Sign = ({ typedData }) => account.signTypedData(typedData as never)
    const { typedData } = await call(registerSigner, as, { address: account.address })
    const signature = await account.signTypedData(typedData as never)
    await call(registerSigner, as, { address: account.address, signature })
    return { address: account.address, sign: signTyped }
  }
  const addAgent = async (as: Principal, more: object = {}) => {
    const agent = await newAgent()
    const registered = await call(createAgent, as, {
      name: 'Bot',
      publicKey: agent.jwk,
      scopes: ['wallets:transfer', 'wallets:read'],
      policy: { ...policy, ...more },
    })
    return { agent, principal: await keyPrincipal(String(registered.agentId)), sign: signBy(agent) }
  }
  const addDeveloperKey = async (as: Principal) => {
    const made = await call(createDeveloperKey, as, { name: 'Key', scopes: ['wallets:transfer'], policy })
    return keyPrincipal(String(made.id))
  }
  const keyPrincipal = async (id: string): Promise<Principal> => {
    const found = await findKey(database, { id })
    if (found === undefined) throw new Error('the key is missing')
    return { kind: 'key', ...found }
  }
  const requestIntent = async (as: Principal, transfer: object, changes: Partial<Context> = {}) =>
    intentAnswer.parse(await call(intentTool, as, transfer, changes))
  const readBooks = async (accountId: string) => {
    const row = (await balances(database, accountId)).find(({ asset }) => asset === 'USDC')
    return { available: row?.available ?? 0n, held: row?.held ?? 0n }
  }
  return {
    call,
    newOwner,
    newPasskeyOwner,
    addPasskey,
    addEoa,
    addAgent,
    addDeveloperKey,
    requestIntent,
    readBooks,
  }
}

function signBy(agent: Agent): Sign {
  return async ({ hash }) => agent.signHash(hash)
}
