/** Signed transfers by real clients over HTTP against the built gateway, on a real chain and on the simulated one. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { createPublicClient, http, parseAbi } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { bursar } from '../commands/bursar.ts'
import { stdioTransport } from '../mcp/scene.ts'
import { newAuthenticator } from '../people/identity/authenticator.ts'
import { newAgent } from './agent.ts'
import { type Gateway, sharedGateway, startGateway } from './gateway.ts'
import { mineWith } from './mined.ts'
import { newMailbox, type Person, personFrom, requestJson, signInByEmail } from './people.ts'

const credentials = z.object({
  chain: z.object({ rpcUrl: z.string().nullable(), tokens: z.record(z.string(), z.string()) }),
})
const intentAnswer = z.looseObject({
  intentId: z.string(),
  hash: z.string(),
  challenge: z.string(),
  typedData: z.looseObject({}),
})
type Intent = z.output<typeof intentAnswer>
type Answer = { status: number; body: Record<string, unknown> }

const policy = {
  perTransaction: { max: '100' },
  dailyBudget: { max: '1000' },
  categories: { allow: ['transfer'] },
}
const newPayee = () => privateKeyToAccount(generatePrivateKey()).address

describe.each(['simulated', 'anvil'])('signed transfers on the chain "%s"', (chain) => {
  let origin: string
  let gateway: Gateway | undefined
  let blockNumber: () => Promise<bigint>
  /** Number of transactions after a block whose data contains an address. */
  let minedTo: (address: string, after: bigint) => Promise<number>
  let readBalance: (address: string) => Promise<bigint>
  beforeAll(async () => {
    if (chain === 'simulated')
      gateway = await startGateway({
        CHAIN: chain,
        ...Object.fromEntries(
          ['MUTATIONS', 'MESSAGES', 'OTP_RESEND', 'OTP_DESTINATION', 'OTP_IP'].map((name) => [
            `RATE_${name}`,
            '10000/60',
          ]),
        ),
      })
    origin = gateway?.origin ?? sharedGateway()
    const { body } = await requestJson(origin, 'GET', '/sandbox/credentials')
    const { rpcUrl, tokens } = credentials.parse(body).chain
    if (rpcUrl === null) {
      blockNumber = async () => 0n
      minedTo = async () => 1
      readBalance = async () => 0n
      return
    }
    const client = createPublicClient({ transport: http(rpcUrl) })
    const abi = parseAbi(['function balanceOf(address) view returns (uint256)'])
    blockNumber = () => client.getBlockNumber({ cacheTime: 0 })
    minedTo = (address, after) => mineWith(client, address, after)
    readBalance = (address) =>
      client.readContract({
        address: `0x${(tokens.USDC ?? '').slice(2)}`,
        abi,
        functionName: 'balanceOf',
        args: [`0x${address.slice(2)}`],
      })
  })
  afterAll(() => gateway?.stop())

  const readPage = () => `http://localhost:${new URL(origin).port}`
  const fund = async (person: Person) => {
    const { body } = await person.send('GET', '/api/wallets')
    await requestJson(origin, 'POST', '/sandbox/faucet', {
      body: { address: body.safeAddress, token: 'USDC', amount: '500' },
    })
    return String(body.safeAddress)
  }
  const newDevice = () => {
    const device = newAuthenticator(readPage())
    const sign = async ({ challenge }: Intent) => {
      const credential = device.get({ challenge, rpId: 'localhost', userVerification: 'required' })
      return Buffer.from(JSON.stringify(credential)).toString('base64url')
    }
    return { device, sign }
  }
  const byPasskey = async () => {
    const { device, sign } = newDevice()
    const send = (body: object) => requestJson(origin, 'POST', '/api/auth/webauthn', { body })
    const { body: registration } = await send({ action: 'register', displayName: 'Ada' })
    const { body } = await send({ action: 'register', credential: device.create(registration.publicKey) })
    const person = personFrom(origin, body)
    await fund(person)
    return { person, ask: person.send, sign, authorization: 'passkey' }
  }
  const byLaterPasskey = async () => {
    const person = await signInByEmail(origin, newMailbox('later'))
    await fund(person)
    await person.send('POST', '/api/wallets/transfer', {
      destination: newPayee(),
      amount: '1',
      signature: 'x',
    })
    const { device, sign } = newDevice()
    const { body: registration } = await person.send('POST', '/api/auth/webauthn', { action: 'register' })
    const credential = device.create(registration.publicKey)
    await person.send('POST', '/api/auth/webauthn', { action: 'register', credential })
    return { person, ask: person.send, sign, authorization: 'passkey' }
  }
  const byEoa = async () => {
    const person = await signInByEmail(origin, newMailbox('eoa'))
    await fund(person)
    const account = privateKeyToAccount(generatePrivateKey())
    const { address } = account
    const { body } = await person.send('POST', '/api/wallets/signers', { address })
    const signature = await account.signTypedData(body.typedData as never)
    await person.send('POST', '/api/wallets/signers', { address, signature })
    const sign = ({ typedData }: Intent) => account.signTypedData(typedData as never)
    return { person, ask: person.send, sign, authorization: 'eoa' }
  }
  const byAgent = async () => {
    const owner = await byPasskey()
    const agent = await newAgent()
    await owner.person.send('POST', '/api/agents/keys', {
      name: 'Bot',
      publicKey: agent.jwk,
      scopes: ['wallets:transfer', 'wallets:read'],
      policy,
    })
    const send = async (method: string, path: string, body?: unknown): Promise<Answer> => {
      const url = `${origin}${path}`
      const response = await agent.fetch({
        method,
        url,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return { status: response.status, body: z.record(z.string(), z.unknown()).parse(await response.json()) }
    }
    return {
      person: owner.person,
      ask: send,
      sign: async ({ hash }: Intent) => agent.signHash(hash),
      authorization: 'agent',
    }
  }

  it('are paid over `bursar mcp` by the credential of the agent alone, from its allowance', async () => {
    const { person } = await byPasskey()
    const directory = mkdtempSync(join(tmpdir(), 'bursar-stdio-'))
    const keyFile = join(directory, 'agent.json')
    const { out } = await bursar(['agent', 'new', '--name', 'Bot', '--out', keyFile])
    const { publicKey } = z.object({ publicKey: z.looseObject({}) }).parse(JSON.parse(out))
    const input = { name: 'Bot', publicKey, scopes: ['wallets:transfer'], policy }
    await person.send('POST', '/api/agents/keys', input)
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(stdioTransport(origin, keyFile))
    const { tools } = await client.listTools()
    const listed = tools.find(({ name }) => name === 'wallets_transfer')
    expect(Object.keys(listed?.inputSchema.properties ?? {})).not.toContain('signature')
    const payment = { destination: newPayee(), amount: '2.5', idempotency_key: 'one' }
    const pay = () => client.callTool({ name: 'wallets_transfer', arguments: payment })
    const paid = await pay()
    expect(paid.structuredContent).toMatchObject({ status: 'confirmed', authorization: 'agent' })
    expect((await pay()).structuredContent).toEqual({
      ...z.looseObject({}).parse(paid.structuredContent),
      replayed: true,
    })
    if (chain === 'anvil') expect(await readBalance(payment.destination)).toBe(2_500_000n)
    // The owner's session still signs.
    const { destination, amount } = payment
    expect(await person.send('POST', '/api/wallets/transfer', { destination, amount })).toMatchObject({
      status: 403,
      body: { code: 'signature_rejected' },
    })
    await client.close()
    rmSync(directory, { recursive: true, force: true })
  })

  describe.each([
    ['the passkey that made the account', byPasskey],
    ['a passkey that a wallet was given to', byLaterPasskey],
    ['an EVM key that a wallet was given to', byEoa],
    ['an agent, from its allowance', byAgent],
  ])('by %s', (_name, make) => {
    let send: (method: string, path: string, body?: unknown) => Promise<Answer>
    let sign: (intent: Intent) => Promise<string>
    let authorization: string
    beforeAll(async () => {
      ;({ ask: send, sign, authorization } = await make())
    })
    const intentFor = async (transfer: object) =>
      intentAnswer.parse((await send('POST', '/api/wallets/transfer/intent', transfer)).body)

    it('pay what was signed, once', async () => {
      const transfer = { destination: newPayee(), amount: '2.5' }
      const intent = await intentFor(transfer)
      const signed = { ...transfer, intentId: intent.intentId, signature: await sign(intent) }
      const before = await blockNumber()
      const { status, body } = await send('POST', '/api/wallets/transfer', signed)
      expect([status, body]).toMatchObject([200, { status: 'confirmed', authorization, amount: '2.5' }])
      if (chain === 'anvil') expect(await readBalance(transfer.destination)).toBe(2_500_000n)
      const read = await send('GET', `/api/wallets/transfers/${String(body.transferId)}`)
      expect(read).toMatchObject({ status: 200, body: { state: 'confirmed', authorization } })
      expect(await send('POST', '/api/wallets/transfer', signed)).toMatchObject({
        status: 403,
        body: { code: 'signature_rejected' },
      })
      expect(await minedTo(transfer.destination, before)).toBe(1)
      if (chain === 'anvil') expect(await readBalance(transfer.destination)).toBe(2_500_000n)
    })
  })

  it('are limited on chain to the allowance that the owner signs for an agent', async () => {
    const owner = await byPasskey()
    const agent = await newAgent()
    const { body: registered } = await owner.ask('POST', '/api/agents/keys', {
      name: 'Bot',
      publicKey: agent.jwk,
      scopes: ['wallets:transfer'],
      policy,
    })
    const agentId = String(registered.agentId)
    const intent = intentAnswer.parse(
      (await owner.ask('POST', '/api/wallets/allowances/intent', { agentId, dailyMax: '5' })).body,
    )
    const set = { intentId: intent.intentId, signature: await owner.sign(intent) }
    expect(await owner.ask('POST', '/api/wallets/allowances', set)).toMatchObject({
      status: 200,
      body: { agentId, dailyMax: '5', spent: '0', isOwn: true },
    })
    const pay = async (amount: string) => {
      const url = `${origin}/api/wallets/transfer`
      const transfer = { destination: newPayee(), amount }
      const waiting = await agent.fetch({
        method: 'POST',
        url: `${url}/intent`,
        body: JSON.stringify(transfer),
      })
      const { hash, intentId } = intentAnswer.parse(await waiting.json())
      const body = JSON.stringify({ ...transfer, intentId, signature: agent.signHash(hash) })
      return (await agent.fetch({ method: 'POST', url, body })).status
    }
    expect([await pay('4'), await pay('2'), await pay('1')]).toEqual([200, 403, 200])
    expect((await owner.ask('GET', '/api/wallets/allowances')).body).toMatchObject({
      allowances: [
        { agentId: 'cards', dailyMax: '1000', spent: '0', isOwn: true },
        { agentId, dailyMax: '5', spent: '5', isOwn: true },
      ],
    })
  })

  it('are listed as CSV too, a page at a time', async () => {
    const { person } = await withHistory()
    const read = (path: string) =>
      fetch(`${origin}${path}`, {
        headers: { authorization: `Bearer ${person.token}`, accept: 'text/csv' },
      })
    const first = await read('/api/wallets/transfers?limit=1&asset=USDC')
    expect(first.headers.get('content-type')).toMatch(/^text\/csv/)
    const lines = (await first.text()).split('\r\n')
    expect(lines[0]).toMatch(/^transferId,state,token,amount,destination,contact,chain,transactionHash,/)
    expect(lines[1]).toMatch(/^tx_\w{26},confirmed,USDC,2,/)
    const next = /^<(.+)>; rel="next"$/.exec(first.headers.get('link') ?? '')?.[1] ?? ''
    const second = await read(next)
    expect((await second.text()).split('\r\n')[1]).toMatch(/^tx_\w{26},confirmed,USDC,1,/)
    expect(second.headers.get('link')).toBeNull()
  })

  async function withHistory() {
    const person = await signInByEmail(origin, newMailbox('history'))
    await fund(person)
    for (const amount of ['1', '2'])
      await person.send('POST', '/api/wallets/transfer', { destination: newPayee(), amount, signature: 'x' })
    return { person }
  }
})
