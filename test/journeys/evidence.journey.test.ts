/**
 * Attacks on the ledger's view of the chain, by outsiders or owners with keys of their own, on a real chain over real
 * HTTP.
 */
import {
  concat,
  createWalletClient,
  encodeFunctionData,
  http,
  numberToHex,
  pad,
  parseAbi,
  publicActions,
  testActions,
} from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { signedPaymentTypes } from '../../src/core/base/signed-payment-types.ts'
import { type Address, type Hex, MINT_MARK } from '../../src/providers/chain/port.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { newGuest, newMailbox, type Person, requestJson, signInByEmail } from './people.ts'

const hex = z.templateLiteral(['0x', z.string()])
const credentials = z.object({
  chain: z.object({ rpcUrl: z.string(), entryPoint: hex, tokens: z.object({ USDC: hex }) }),
})
const challenge = z.object({ accepts: z.tuple([z.looseObject({ payTo: hex })]) })
const safeOperation = z.looseObject({
  domain: z.looseObject({ chainId: z.number(), verifyingContract: hex }),
  types: z.record(z.string(), z.array(z.object({ name: z.string(), type: z.string() }))),
  message: z.looseObject({ safe: hex, nonce: z.string() }),
})
type SafeOperation = z.output<typeof safeOperation>

const tokenAbi = parseAbi([
  'function balanceOf(address) view returns (uint256)',
  'function transfer(address to, uint256 value) returns (bool)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
])
const safeAbi = parseAbi([
  'function executeUserOpWithErrorString(address to, uint256 value, bytes data, uint8 operation)',
])
const entryPointAbi = parseAbi([
  'struct PackedUserOperation { address sender; uint256 nonce; bytes initCode; bytes callData; bytes32 accountGasLimits; uint256 preVerificationGas; bytes32 gasFees; bytes paymasterAndData; bytes signature; }',
  'function handleOps(PackedUserOperation[] ops, address beneficiary)',
])
const usdc = { name: 'USDC', version: '2', chainId: 84532 }
const quote = '/api/x402/fx?from=USD&to=EUR&amount=100'
const newKey = () => privateKeyToAccount(generatePrivateKey())
const newNonce = () => generatePrivateKey()

describe('the books of a gateway under attack', () => {
  let gateway: Gateway
  let neighbour: Gateway
  let token: Address
  let entryPoint: Address
  let rpcUrl: string
  beforeAll(async () => {
    const rates = [
      'MUTATIONS',
      'GASLESS',
      'FX',
      'MESSAGES',
      'STOPS',
      'OTP_RESEND',
      'OTP_DESTINATION',
      'OTP_IP',
    ]
    const env = Object.fromEntries(rates.map((name) => [`RATE_${name}`, '100000/60']))
    gateway = await startGateway({ CHAIN: 'anvil', ...env })
    const { chain } = credentials.parse(
      (await requestJson(gateway.origin, 'GET', '/sandbox/credentials')).body,
    )
    token = chain.tokens.USDC
    entryPoint = chain.entryPoint
    rpcUrl = chain.rpcUrl
    // Same payee and token, another database.
    neighbour = await startGateway({ CHAIN_RPC_URL: rpcUrl, ...env })
  }, 90_000)
  afterAll(async () => {
    await neighbour?.stop()
    await gateway?.stop()
  })

  const createClient = (account: PrivateKeyAccount) =>
    createWalletClient({ account, chain: baseSepolia, transport: http(rpcUrl), pollingInterval: 20 })
      .extend(publicActions)
      .extend(testActions({ mode: 'anvil' }))
  const newAttacker = async (usd: string) => {
    const key = newKey()
    await requestJson(gateway.origin, 'POST', '/sandbox/faucet', {
      body: { address: key.address, token: 'USDC', amount: usd },
    })
    const client = createClient(key)
    await client.setBalance({ address: key.address, value: 10n ** 24n })
    return { key, client }
  }
  const onChain = (address: Address) =>
    createClient(newKey()).readContract({
      address: token,
      abi: tokenAbi,
      functionName: 'balanceOf',
      args: [address],
    })
  const sign = async (
    key: PrivateKeyAccount,
    { to, value, nonce }: { to: Address; value: bigint; nonce: Hex },
  ) => {
    const message = { from: key.address, to, value, validAfter: 0n, validBefore: 4_000_000_000n, nonce }
    const domain = { ...usdc, verifyingContract: token }
    const primaryType = 'TransferWithAuthorization'
    const signature = await key.signTypedData({ domain, types: signedPaymentTypes, primaryType, message })
    const text = { value: `${value}`, validAfter: '0', validBefore: '4000000000' }
    return { message, signature, authorization: { ...message, ...text } }
  }
  type Signed = Awaited<ReturnType<typeof sign>>
  /** Submits the payer's authorization to the token directly, ahead of all pending transactions. */
  const carry = (client: ReturnType<typeof createClient>, { message, signature }: Signed) => {
    const { from, to, value, validAfter, validBefore, nonce } = message
    const args = [from, to, value, validAfter, validBefore, nonce, signature] as const
    const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transferWithAuthorization', args })
    const fees = { maxFeePerGas: 10n ** 15n, maxPriorityFeePerGas: 10n ** 15n }
    return client.sendTransaction({ to: token, data, gas: 200_000n, ...fees })
  }
  const readWallet = async (person: Person) => {
    const { body } = await person.send('GET', '/api/wallets')
    const shown = z.object({ safeAddress: hex, balances: z.array(z.looseObject({})) }).parse(body)
    return { address: shown.safeAddress, usdc: shown.balances.find((row) => row.token === 'USDC') }
  }
  const awaitSettled = async (check: () => Promise<boolean>) => {
    for (let times = 0; times < 600; times += 1) {
      if (await check()) return
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    throw new Error('it did not come to an end in 30 seconds')
  }

  it('books a relay by what its own transaction moved, not by its nonce', async () => {
    const guest = await newGuest(gateway.origin)
    const wallet = await readWallet(guest)
    const { key, client } = await newAttacker('1000')
    const nonce = newNonce()
    const large = await sign(key, { to: wallet.address, value: 900_000_000n, nonce })
    const tiny = await sign(key, { to: key.address, value: 1n, nonce })
    await client.setAutomine(false)
    const { authorization, signature } = large
    const body = { token: 'USDC', authorization: { ...authorization, signature } }
    const headers = { 'idempotency-key': nonce }
    const relayed = guest.send('POST', '/api/transfers/gasless', body, headers)
    await new Promise((resolve) => setTimeout(resolve, 500))
    await carry(client, tiny)
    await client.mine({ blocks: 1 })
    await client.setAutomine(true)
    await relayed
    await awaitSettled(async () => {
      const { body: end } = await guest.send('POST', '/api/transfers/gasless', body, headers)
      return end.code === 'authorization_rejected'
    })
    await new Promise((resolve) => setTimeout(resolve, 8_000))
    expect(await onChain(key.address)).toBe(1_000_000_000n)
    expect((await readWallet(guest)).usdc).toMatchObject({ amount: '1000', held: '0' })
  }, 90_000)

  it('delivers no quote for a payment whose nonce the payer spends on something else', async () => {
    const { body } = await requestJson(gateway.origin, 'GET', quote)
    const { payTo } = challenge.parse(body).accepts[0]
    const before = await onChain(payTo)
    for (let times = 0; times < 5; times += 1) {
      const { key, client } = await newAttacker('1')
      const nonce = newNonce()
      const payment = await sign(key, { to: payTo, value: 10_000n, nonce })
      const tiny = await sign(key, { to: key.address, value: 1n, nonce })
      const header = encodeHeader({ authorization: payment.authorization, signature: payment.signature })
      const send = () => requestJson(gateway.origin, 'GET', quote, { headers: { 'x-payment': header } })
      await client.setAutomine(false)
      const paid = send()
      await new Promise((resolve) => setTimeout(resolve, 100 * times))
      await carry(client, tiny)
      await client.mine({ blocks: 1 })
      await client.setAutomine(true)
      const answers = [await paid]
      for (let again = 0; again < 3; again += 1) answers.push(await send())
      await awaitSettled(async () => {
        answers.push(await send())
        return answers.at(-1)?.status === 402
      })
      expect(answers.map(({ status }) => status)).not.toContain(200)
      expect(await onChain(key.address)).toBe(1_000_000n)
    }
    expect(await onChain(payTo)).toBe(before)
  }, 120_000)

  it('delivers one sale for a payment presented to two gateways with the same payee', async () => {
    const { body } = await requestJson(gateway.origin, 'GET', quote)
    const { payTo } = challenge.parse(body).accepts[0]
    expect(challenge.parse((await requestJson(neighbour.origin, 'GET', quote)).body).accepts[0].payTo).toBe(
      payTo,
    )
    for (let times = 0; times < 4; times += 1) {
      const { key } = await newAttacker('1')
      const { authorization, signature } = await sign(key, { to: payTo, value: 10_000n, nonce: newNonce() })
      const headers = { 'x-payment': encodeHeader({ authorization, signature }) }
      const sendTo = ({ origin }: Gateway) => requestJson(origin, 'GET', quote, { headers })
      const answers = await Promise.all([gateway, neighbour, gateway, neighbour].map(sendTo))
      for (const each of [gateway, neighbour, gateway, neighbour]) answers.push(await sendTo(each))
      const ids = answers.flatMap(({ status, body: { payment } }) =>
        status === 200 ? [readId(payment)] : [],
      )
      expect(new Set(ids).size).toBe(1)
      expect(await onChain(key.address)).toBe(990_000n)
    }
  }, 60_000)

  it.each(['v1', 'v2'])('passes nothing on of a %s payment but the signed transfer', async (generation) => {
    const { body } = await requestJson(gateway.origin, 'GET', quote)
    const terms = challenge.parse(body).accepts[0]
    const { key } = await newAttacker('1')
    const { authorization, signature } = await sign(key, {
      to: terms.payTo,
      value: 10_000n,
      nonce: newNonce(),
    })
    const permitted = { token, amount: '10000' }
    const permit2Authorization = {
      from: key.address,
      permitted,
      spender: terms.payTo,
      nonce: '1',
      deadline: '4000000000',
    }
    const payload = { signature, authorization, permit2Authorization }
    const accepted = {
      scheme: 'exact',
      network: 'eip155:84532',
      amount: '10000',
      asset: token,
      payTo: terms.payTo,
      maxTimeoutSeconds: 300,
      extra: { name: 'USDC', version: '2', assetTransferMethod: 'permit2' },
    }
    const [name, envelope] =
      generation === 'v1'
        ? ['x-payment', { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload }]
        : ['payment-signature', { x402Version: 2, accepted, payload }]
    const headers = { [name]: Buffer.from(JSON.stringify(envelope)).toString('base64') }
    expect(await requestJson(gateway.origin, 'GET', quote, { headers })).toMatchObject({
      status: 200,
      body: { payment: { amount: '0.01', payer: key.address } },
    })
    // The signed transfer alone was executed: what it does not know is passed on to nobody.
    expect(await onChain(key.address)).toBe(990_000n)
  })

  describe('an owner with an EVM key', () => {
    let owner: Person
    let key: PrivateKeyAccount
    beforeEach(async () => {
      owner = await signInByEmail(gateway.origin, newMailbox('owner'))
      key = newKey()
      const { address } = key
      const { body } = await owner.send('POST', '/api/wallets/signers', { address })
      const signature = await key.signTypedData(body.typedData as never)
      expect(await owner.send('POST', '/api/wallets/signers', { address, signature })).toMatchObject({
        status: 200,
      })
      await requestJson(gateway.origin, 'POST', '/sandbox/faucet', {
        body: { address: (await readWallet(owner)).address, token: 'USDC', amount: '500' },
      })
      // The first transfer deploys the wallet and hands over its ownership.
      expect(await send(await intentFor({ destination: newKey().address, amount: '1' }))).toMatchObject({
        status: 200,
        body: { status: 'confirmed' },
      })
      await createClient(key).setBalance({ address, value: 10n ** 19n })
    }, 60_000)

    const intentFor = async (transfer: { destination: Address; amount: string }) => {
      const { body } = await owner.send('POST', '/api/wallets/transfer/intent', transfer)
      return { transfer, intentId: String(body.intentId), typedData: safeOperation.parse(body.typedData) }
    }
    const send = async ({ transfer, intentId, typedData }: Awaited<ReturnType<typeof intentFor>>) => {
      const signature = await key.signTypedData(typedData as never)
      return owner.send('POST', '/api/wallets/transfer', { ...transfer, intentId, signature })
    }
    /** Executes another call of the wallet under an operation's nonce, with gas paid by the owner. */
    const execute = async (
      { domain, types, message }: SafeOperation,
      call: { to: Address; data: Hex },
      mark: Hex = '0x',
    ) => {
      const args = [call.to, 0n, call.data, 0] as const
      const callData = encodeFunctionData({
        abi: safeAbi,
        functionName: 'executeUserOpWithErrorString',
        args,
      })
      const signed = { ...message, callData }
      const signature = await key.signTypedData({
        domain,
        types,
        primaryType: 'SafeOp',
        message: signed,
      } as never)
      const limits = z
        .looseObject({ verificationGasLimit: z.string(), callGasLimit: z.string(), validUntil: z.number() })
        .parse(message)
      const operation = {
        sender: message.safe,
        nonce: BigInt(message.nonce),
        initCode: '0x',
        callData,
        accountGasLimits: concat([
          numberToHex(BigInt(limits.verificationGasLimit), { size: 16 }),
          numberToHex(BigInt(limits.callGasLimit), { size: 16 }),
        ]),
        preVerificationGas: 0n,
        gasFees: pad('0x', { size: 32 }),
        paymasterAndData: '0x',
        signature: concat([pad('0x', { size: 6 }), numberToHex(limits.validUntil, { size: 6 }), signature]),
      } as const
      const client = createClient(key)
      const data = encodeFunctionData({
        abi: entryPointAbi,
        functionName: 'handleOps',
        args: [[operation], key.address],
      })
      const hash = await client.sendTransaction({
        to: entryPoint,
        data: concat([data, mark]),
        gas: 2_000_000n,
      })
      expect(await client.waitForTransactionReceipt({ hash })).toMatchObject({ status: 'success' })
    }

    it('gets signature_rejected for a transfer whose nonce was spent on an empty call', async () => {
      const receiver = await newGuest(gateway.origin)
      const { address } = await readWallet(receiver)
      const intent = await intentFor({ destination: address, amount: '200' })
      await execute(intent.typedData, { to: key.address, data: '0x' })
      expect(await send(intent)).toMatchObject({ status: 403, body: { code: 'signature_rejected' } })
      await new Promise((resolve) => setTimeout(resolve, 7_000))
      expect((await readWallet(receiver)).usdc).toMatchObject({ amount: '1000', held: '0' })
      expect((await readWallet(owner)).usdc).toMatchObject({ amount: '499', held: '0' })
      expect(await onChain((await readWallet(owner)).address)).toBe(499_000_000n)
    }, 60_000)

    it('cannot hide a movement behind the mark of the sandbox’s own mints', async () => {
      const receiver = await newGuest(gateway.origin)
      const { address } = await readWallet(receiver)
      const { usdc: before } = await readWallet(owner)
      const intent = await intentFor({ destination: newKey().address, amount: '1' })
      const args = [address, 2_000_000n] as const
      const data = encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args })
      await execute(intent.typedData, { to: token, data }, MINT_MARK)
      await awaitSettled(async () => (await readWallet(receiver)).usdc?.amount === '1002')
      await awaitSettled(
        async () => (await readWallet(owner)).usdc?.amount === `${Number(before?.amount) - 2}`,
      )
      await requestJson(gateway.origin, 'POST', '/sandbox/faucet', {
        body: { address: (await readWallet(owner)).address, token: 'USDC', amount: '2' },
      })
    }, 60_000)

    it('sees transfers made outside the gateway, as does a receiving wallet of the gateway', async () => {
      const receiver = await newGuest(gateway.origin)
      const { address } = await readWallet(receiver)
      const intent = await intentFor({ destination: newKey().address, amount: '1' })
      const data = encodeFunctionData({
        abi: tokenAbi,
        functionName: 'transfer',
        args: [address, 150_000_000n],
      })
      await execute(intent.typedData, { to: token, data })
      await awaitSettled(async () => (await readWallet(owner)).usdc?.amount === '349')
      await awaitSettled(async () => (await readWallet(receiver)).usdc?.amount === '1150')
      // Submitting the transfer afterwards neither executes nor books it.
      expect(await send(intent)).toMatchObject({ status: 403, body: { code: 'signature_rejected' } })
      expect((await readWallet(owner)).usdc).toMatchObject({ amount: '349', held: '0' })
    }, 60_000)
  })
})

function encodeHeader(payload: object): string {
  const text = JSON.stringify(
    { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload },
    (_name, value: unknown) => (typeof value === 'bigint' ? value.toString() : value),
  )
  return Buffer.from(text).toString('base64')
}

function readId(payment: unknown): string {
  return z.looseObject({ id: z.string() }).parse(payment).id
}
