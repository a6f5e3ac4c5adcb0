import { beforeAll, describe, expect, it } from 'vitest'
import { findApproval } from '../../../src/books/approvals/approvals.ts'
import type { Principal } from '../../../src/core/base/principal.ts'
import type { Context, Services } from '../../../src/kernel/context.ts'
import { createRunApproved } from '../../../src/kernel/run-approved.ts'
import { findIssuedKey, insertKey } from '../../../src/people/identity/store.ts'
import type { Chain } from '../../../src/providers/chain/port.ts'
import { findOwnedWallet } from '../../../src/rails/wallets/store.ts'
import { settlePending } from '../../../src/server/jobs/settle-pending.ts'
import decide from '../../../tools/approvals/decide.ts'
import { tools } from '../../../tools/index.ts'
import transfer from '../../../tools/wallets/transfer.ts'
import { onBothEngines } from '../../engines.ts'
import { buildKeyPrincipal, noon, origin, servicesOn } from '../../kernel/scene.ts'
import { newAuthenticator } from '../../people/identity/authenticator.ts'
import { type Intent, payee, type Sign, signAssertion, walletScene } from './scene.ts'

const rejected = { code: 'signature_rejected' }
const one = { destination: payee, amount: '1' }
const inMinutes = (minutes: number) => new Date(noon.getTime() + minutes * 60_000)

onBothEngines('a signed transfer', (database) => {
  let services: Services
  let scene: ReturnType<typeof walletScene>
  beforeAll(async () => {
    const runApproved = createRunApproved((name) => tools.find((tool) => tool.name === name))
    services = await servicesOn(database(), { runApproved })
    scene = walletScene(services)
  })
  const pay = (as: Principal, input: object, changes: Partial<Context> = {}) =>
    scene.call(transfer, as, { ...one, ...input }, changes)
  const accountIn = (as: Principal) => {
    if (!('account' in as)) throw new Error('no session')
    return as.account
  }
  const findAccountId = (as: Principal) => accountIn(as).id
  const findKeyId = (as: Principal) => (as.kind === 'key' ? as.key.id : null)

  it('gets limited sponsored gas per day if gas has a price, and is then delayed', async () => {
    const owner = await scene.newOwner()
    const chain: Chain = { ...services.chain, isGasFree: false }
    const settings = {
      ...services.settings,
      rateLimits: new Map([['sponsored', { count: 2, seconds: 86_400 }]]),
    }
    const send = () => pay(owner, { signature: 'sandbox' }, { chain, settings })
    expect(await send()).toMatchObject({ status: 'confirmed' })
    expect(await send()).toMatchObject({ status: 'confirmed' })
    await expect(send()).rejects.toMatchObject({ code: 'rate_limited', members: { retryAfter: 86_400 } })
    const another = await scene.newOwner()
    expect(await pay(another, { signature: 'sandbox' }, { chain, settings })).toMatchObject({
      status: 'confirmed',
    })
  })

  it('is sent for an OAuth client by its owner’s consent, up to the on-chain allowance', async () => {
    const { owner } = await scene.newPasskeyOwner()
    const policy = {
      perTransaction: { max: '5000' },
      dailyBudget: { max: '5000' },
      categories: { allow: ['transfer'] },
    }
    const key = buildKeyPrincipal(accountIn(owner), {
      kind: 'grant',
      scopes: ['wallets:transfer'],
      policy: { currency: 'USD', ...policy },
    })
    await insertKey(database(), findAccountId(owner), { ...key.key, secretHash: null })
    const sent = await pay(key, { signature: 'sandbox', amount: '900' })
    expect(sent).toMatchObject({ status: 'confirmed', authorization: 'agent' })
    await expect(pay(key, { signature: 'sandbox', amount: '90', token: 'EURC' })).rejects.toMatchObject({
      ...rejected,
      message: expect.stringContaining('on-chain allowance of 1000 USD a day'),
    })
    await expect(
      pay(key, { signature: 'sandbox', intentId: 'int_01kaj8e8z8f9t9w8m4q6x7v5r2' }),
    ).rejects.toMatchObject(rejected)
  })

  it('returns the same error permanently for the second use of an intent', async () => {
    const { owner } = await scene.newPasskeyOwner()
    const { principal, sign } = await scene.addAgent(owner)
    const intent = await scene.requestIntent(principal, one)
    const signature = await sign(intent)
    const send = (idempotencyKey: string) =>
      pay(principal, { intentId: intent.intentId, signature }, { idempotencyKey }).then(
        ({ status }) => status,
        ({ code }: { code: string }) => code,
      )
    const keys = ['first', 'second', 'third', 'fourth']
    const repeated = await Promise.all(keys.map(send))
    expect(repeated.filter((one) => one === 'confirmed')).toHaveLength(1)
    expect(repeated.filter((one) => one === 'signature_rejected')).toHaveLength(3)
    expect(await Promise.all(keys.map(send))).toEqual(repeated)
  })

  it('returns the same error permanently for an exhausted allowance', async () => {
    const { owner } = await scene.newPasskeyOwner()
    const { principal, sign } = await scene.addAgent(owner, {
      perTransaction: { max: '5000' },
      dailyBudget: { max: '5000' },
    })
    const spend = async (token: string, amount: string, idempotencyKey: string) => {
      const input = { ...one, token, amount }
      const intent = await scene.requestIntent(principal, input)
      const signed = { ...input, intentId: intent.intentId, signature: await sign(intent) }
      const again = () => pay(principal, signed, { idempotencyKey })
      return { again, told: again() }
    }
    await (await spend('USDC', '950', 'most')).told
    const { told: repeated, again } = await spend('EURC', '90', 'too much')
    await expect(repeated).rejects.toMatchObject(rejected)
    await expect(again()).rejects.toMatchObject(rejected)
  })

  /** An account of each kind, with its principal and its signer. */
  const kinds: Record<string, () => Promise<{ as: Principal; sign: Sign; authorization: string }>> = {
    'a passkey that owns the wallet': async () => {
      const { owner, sign } = await scene.newPasskeyOwner()
      return { as: owner, sign, authorization: 'passkey' }
    },
    'a second passkey': async () => {
      const { owner } = await scene.newPasskeyOwner()
      const { sign } = await scene.addPasskey(owner)
      return { as: owner, sign, authorization: 'passkey' }
    },
    'an EVM key that owns the wallet': async () => {
      const owner = await scene.newOwner()
      const { sign } = await scene.addEoa(owner)
      return { as: owner, sign, authorization: 'eoa' }
    },
    'an EVM key beside a passkey': async () => {
      const { owner } = await scene.newPasskeyOwner()
      const { sign } = await scene.addEoa(owner)
      return { as: owner, sign, authorization: 'eoa' }
    },
    'an agent of a passkey’s account': async () => {
      const { owner } = await scene.newPasskeyOwner()
      const { principal, sign } = await scene.addAgent(owner)
      return { as: principal, sign, authorization: 'agent' }
    },
    'an agent of an account without signers': async () => {
      const { principal, sign } = await scene.addAgent(await scene.newOwner())
      return { as: principal, sign, authorization: 'agent' }
    },
    'the owner’s passkey, for a developer key': async () => {
      const { owner, sign } = await scene.newPasskeyOwner()
      return { as: await scene.addDeveloperKey(owner), sign, authorization: 'passkey' }
    },
  }

  describe.each(Object.entries(kinds))('by %s', (_name, make) => {
    let as: Principal
    let sign: Sign
    let authorization: string
    beforeAll(async () => {
      ;({ as, sign, authorization } = await make())
    })
    const signIntent = async (changes: object = {}, at = noon): Promise<[Intent, string]> => {
      const intent = await scene.requestIntent(as, { ...one, ...changes }, { now: at })
      return [intent, await sign(intent)]
    }
    const state = async () => ({
      books: await scene.readBooks(findAccountId(as)),
      block: await services.chain.blockNumber(),
    })

    it('moves the money once, and a repeated call returns the same answer', async () => {
      const before = await scene.readBooks(findAccountId(as))
      const [{ intentId }, signature] = await signIntent()
      const call = () => pay(as, { intentId, signature }, { idempotencyKey: intentId })
      const first = await call()
      expect(first).toMatchObject({ status: 'confirmed', authorization })
      expect(await call()).toEqual(first)
      expect(
        await scene.call(
          transfer,
          as,
          { ...one, intentId, signature },
          { idempotencyKey: intentId, now: inMinutes(30) },
        ),
      ).toEqual(first)
      expect(await scene.readBooks(findAccountId(as))).toEqual({
        available: before.available - 1_000_000n,
        held: 0n,
      })
      const [row] = await database()
        .kysely.selectFrom('decision')
        .select('facts')
        .where('id', '=', String(first.decisionId))
        .execute()
      expect(JSON.stringify(row)).not.toContain(signature)
    })

    it('uses the newest open intent by default', async () => {
      const [, signature] = await signIntent({ amount: '2' })
      expect(await pay(as, { amount: '2', signature })).toMatchObject({ status: 'confirmed', authorization })
    })

    it('is rejected with any member changed, and nothing is reserved or sent', async () => {
      const [{ intentId }, signature] = await signIntent()
      const [, other] = await signIntent({ amount: '3' })
      const before = await state()
      const attempts = [
        { intentId, signature, amount: '1.000001' },
        { intentId, signature, destination: `0x${'2'.repeat(40)}` },
        { intentId, signature, token: 'EURC' },
        { intentId, signature: other },
        { intentId, signature: 'sandbox' },
        { intentId, signature: `${signature.slice(0, -4)}${signature.endsWith('AAAA') ? 'BBBB' : 'AAAA'}` },
        { intentId: 'int_00000000000000000000000000', signature },
        { intentId, signature, chain: 'base' },
      ]
      for (const attempt of attempts)
        await expect(pay(as, attempt), JSON.stringify(attempt)).rejects.toMatchObject(rejected)
      await expect(pay(as, { intentId, signature }, { now: inMinutes(6) })).rejects.toMatchObject(rejected)
      expect(await state()).toEqual(before)
      await pay(as, { intentId, signature })
      const after = await state()
      await expect(pay(as, { intentId, signature })).rejects.toMatchObject(rejected)
      expect(await state()).toEqual(after)
    })

    it('is resumed by the job, with the same signature, when the chain did not answer', async () => {
      const before = await scene.readBooks(findAccountId(as))
      const [{ intentId }, signature] = await signIntent()
      const dead: Chain = {
        ...services.chain,
        submit: () => Promise.reject(new Error('there is no connection')),
      }
      const call = (changes: Partial<Context> = {}) =>
        pay(as, { intentId, signature }, { idempotencyKey: intentId, ...changes })
      await expect(call({ chain: dead })).rejects.toMatchObject({ code: 'settlement_pending' })
      await settlePending({ ...services, clock: () => inMinutes(1) }, new AbortController().signal)
      expect(await call()).toMatchObject({ status: 'confirmed', authorization })
      expect(await scene.readBooks(findAccountId(as))).toEqual({
        available: before.available - 1_000_000n,
        held: 0n,
      })
    })

    it('is used by one of two concurrent calls, and the other’s hold is released', async () => {
      const before = await scene.readBooks(findAccountId(as))
      const [{ intentId }, signature] = await signIntent()
      const calls = ['a', 'b'].map((key) =>
        pay(as, { intentId, signature }, { idempotencyKey: `${intentId} ${key}` }),
      )
      const ends = (await Promise.allSettled(calls)).map(({ status }) => status)
      expect(ends.sort()).toEqual(['fulfilled', 'rejected'])
      expect(await scene.readBooks(findAccountId(as))).toEqual({
        available: before.available - 1_000_000n,
        held: 0n,
      })
    })
  })

  it('rejects another person’s passkey, key or agent', async () => {
    const { owner } = await scene.newPasskeyOwner()
    const eve = await scene.newPasskeyOwner()
    const [eoa, agent, ownAgent] = [
      await scene.addEoa(eve.owner),
      await scene.addAgent(eve.owner),
      await scene.addAgent(owner),
    ]
    const intent = await scene.requestIntent(owner, one)
    const foreignDevice = newAuthenticator(origin)
    for (const sign of [eve.sign, eoa.sign, agent.sign, ownAgent.sign])
      await expect(
        pay(owner, { intentId: intent.intentId, signature: await sign(intent) }),
      ).rejects.toMatchObject(rejected)
    expect(() => signAssertion(foreignDevice, intent.challenge)).toThrow()
    // An intent is bound to its caller: neither the owner's agent nor another account can use it.
    for (const as of [ownAgent.principal, eve.owner])
      await expect(
        pay(as, { intentId: intent.intentId, signature: await ownAgent.sign(intent) }),
      ).rejects.toMatchObject(rejected)
  })

  it('needs no signature of a key, which spends from its on-chain allowance', async () => {
    const addKeys = [
      async (owner: Principal) => (await scene.addAgent(owner)).principal,
      scene.addDeveloperKey,
    ]
    for (const addKey of addKeys) {
      const { owner } = await scene.newPasskeyOwner()
      const key = await addKey(owner)
      const call = () => pay(key, { amount: '400' }, { idempotencyKey: 'unsigned' })
      const sent = await call()
      expect(sent).toMatchObject({ status: 'confirmed', authorization: 'agent' })
      expect(await call()).toEqual(sent)
      expect(await pay(key, { amount: '450', token: 'EURC' })).toMatchObject({ status: 'confirmed' })
      const before = await scene.readBooks(findAccountId(owner))
      await expect(pay(key, { amount: '37.51' })).rejects.toMatchObject({
        ...rejected,
        message: expect.stringContaining('on-chain allowance of 1000 USD a day'),
      })
      expect(await scene.readBooks(findAccountId(owner))).toEqual(before)
      const row = await database()
        .kysely.selectFrom('decision')
        .select('facts')
        .where('id', '=', String(sent.decisionId))
        .executeTakeFirstOrThrow()
      expect(row.facts).toMatchObject({
        found: { authorized: { signer: 'agent', by: 'allowance', signerId: findKeyId(key), intentId: null } },
      })
      // A signature that is sent is checked, and the owner's session still signs.
      await expect(pay(key, { signature: 'sandbox' })).rejects.toMatchObject({
        ...rejected,
        members: { hint: expect.stringContaining('Leave out "signature"') },
      })
      for (const input of [{}, { signature: 'sandbox' }])
        await expect(pay(owner, input)).rejects.toMatchObject(rejected)
    }
  })

  it('needs no signature of a key in production either, and always one of a person', async () => {
    const settings = { ...services.settings, mode: 'production' as const }
    const owners = [(await scene.newPasskeyOwner()).owner, await scene.newOwner()]
    for (const owner of owners) {
      const { principal } = await scene.addAgent(owner)
      expect(await pay(principal, {}, { settings })).toMatchObject({ authorization: 'agent' })
      const account = { ...accountIn(owner), mfaEnrolled: true }
      if (owner.kind !== 'session') throw new Error('no session')
      const steppedUp = { ...owner, account, session: { ...owner.session, steppedUpAt: noon } }
      await expect(pay(steppedUp, {}, { settings })).rejects.toMatchObject({
        code: expect.stringMatching(/^(invalid_request|signature_rejected)$/),
        message: expect.stringMatching(/sign/),
      })
      await expect(pay(steppedUp, { signature: 'x' }, { settings })).rejects.toMatchObject(rejected)
    }
  })

  it('needs an intent by name to be signed, by a key too', async () => {
    const { owner } = await scene.newPasskeyOwner()
    const { principal, sign } = await scene.addAgent(owner)
    const intent = await scene.requestIntent(principal, one)
    const { intentId } = intent
    await expect(pay(principal, { intentId })).rejects.toMatchObject(rejected)
    expect(await pay(principal, { intentId, signature: await sign(intent) })).toMatchObject({
      authorization: 'agent',
    })
  })

  it('takes any signature when no signer exists, and then records `sandbox`', async () => {
    const owner = await scene.newOwner()
    expect(await pay(owner, { signature: 'x' })).toMatchObject({ authorization: 'sandbox' })
    await expect(pay(owner, {})).rejects.toMatchObject({ code: 'invalid_request' })
    const { principal } = await scene.addAgent(owner)
    expect(await pay(principal, {})).toMatchObject({ authorization: 'agent' })
    const intent = await scene.requestIntent(owner, one)
    await expect(
      pay(owner, { intentId: intent.intentId, amount: '2', signature: 'x' }),
    ).rejects.toMatchObject(rejected)
    expect(await pay(owner, { intentId: intent.intentId, signature: 'x' })).toMatchObject({
      authorization: 'sandbox',
    })
    await expect(pay(owner, { intentId: intent.intentId, signature: 'x' })).rejects.toMatchObject(rejected)
  })

  it('runs when it is approved, after any delay', async () => {
    const { owner } = await scene.newPasskeyOwner()
    const { principal, sign } = await scene.addAgent(owner, { approval: { above: '10', ttlSec: 3600 } })
    const intent = await scene.requestIntent(principal, { ...one, amount: '20' })
    const input = { amount: '20', intentId: intent.intentId, signature: await sign(intent) }
    const payAt = (now: Date) => pay(principal, input, { idempotencyKey: 'invoice-1', now })
    const refusal = await payAt(noon).catch((error: unknown) => error)
    expect(refusal).toMatchObject({ code: 'approval_required' })
    const { approvalId } = (refusal as { members: { approvalId: string } }).members
    await expect(payAt(inMinutes(20))).rejects.toMatchObject({
      code: 'approval_required',
      members: { approvalId },
    })
    await expect(pay(principal, { ...input, amount: '21' }, { now: inMinutes(20) })).rejects.toMatchObject(
      rejected,
    )
    const late = { ...services, clock: () => inMinutes(21) }
    const now = inMinutes(21)
    await scene.call(decide, owner, { id: approvalId, decision: 'approve' }, { now }).catch(() => undefined)
    const approval = await findApproval(database(), {
      accountId: findAccountId(owner),
      keyId: null,
      id: approvalId,
      now,
    })
    if (approval === undefined) throw new Error('the approval is missing')
    const done = await late.runApproved({ ...late, requestId: 'req_test', now }, approval, findIssuedKey)
    expect(done.answer).toMatchObject({ status: 'confirmed', authorization: 'agent' })
    expect(await payAt(inMinutes(22))).toEqual(done.answer)
  })

  it('spends by an agent no more than the owner allows on chain', async () => {
    const { owner } = await scene.newPasskeyOwner()
    const { principal, sign } = await scene.addAgent(owner)
    const send = async (amount: string, token = 'USDC') => {
      const intent = await scene.requestIntent(principal, { ...one, amount, token })
      return pay(principal, { amount, token, intentId: intent.intentId, signature: await sign(intent) })
    }
    // A euro counts as 1.25 USD on chain, of 1,000 a day.
    await send('400', 'EURC')
    await send('400')
    const before = await scene.readBooks(findAccountId(owner))
    await expect(send('100.000001')).rejects.toMatchObject({ ...rejected, members: { isFinal: true } })
    expect(await scene.readBooks(findAccountId(owner))).toEqual(before)
  })

  it('gives the wallet to the first signer, and requires the new owner’s signature from then on', async () => {
    const owner = await scene.newOwner()
    const readOwner = async () => (await findOwnedWallet(database(), owner.account.id))?.owner
    await pay(owner, { signature: 'x' })
    const { address, sign } = await scene.addEoa(owner)
    expect(await readOwner()).toEqual({ kind: 'eoa', address })
    await scene.addPasskey(owner)
    expect(await readOwner()).toEqual({ kind: 'eoa', address })
    await expect(pay(owner, { signature: 'x' })).rejects.toMatchObject(rejected)
    const intent = await scene.requestIntent(owner, one)
    expect(await pay(owner, { signature: await sign(intent) })).toMatchObject({ authorization: 'eoa' })
  })
})
