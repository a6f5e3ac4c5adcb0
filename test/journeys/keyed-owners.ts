/** Owners and outsiders with EVM keys of their own, who act through the gateway and around it. */
import {
  concat,
  createPublicClient,
  createWalletClient,
  encodeFunctionData,
  http,
  numberToHex,
  pad,
  parseAbi,
} from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { z } from 'zod'
import { sandboxTokens } from '../../src/chain/rpc/networks.ts'
import { signedPaymentTypes } from '../../src/core/base/signed-payment-types.ts'
import type { Address, Hex } from '../../src/providers/chain/port.ts'
import { type Person, requestJson, signInByEmail } from './people.ts'

/** Addresses that receive the sandbox's own income: x402 sales and card settlements. */
export const stableTokens = {
  payTo: '0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f',
  treasury: '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720',
} as const

const hex = z.templateLiteral(['0x', z.string()])
const safeOperation = z.looseObject({
  domain: z.looseObject({}),
  types: z.record(z.string(), z.unknown()),
  message: z.looseObject({
    safe: hex,
    nonce: z.string(),
    verificationGasLimit: z.string(),
    callGasLimit: z.string(),
    validUntil: z.number(),
    entryPoint: hex,
  }),
})
type SafeOperation = z.output<typeof safeOperation>

const tokenAbi = parseAbi([
  'function balanceOf(address) view returns (uint256)',
  'function transfer(address to, uint256 value) returns (bool)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
  'function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
])
const safeAbi = parseAbi([
  'function executeUserOpWithErrorString(address to, uint256 value, bytes data, uint8 operation)',
])
const entryPointAbi = parseAbi([
  'struct PackedUserOperation { address sender; uint256 nonce; bytes initCode; bytes callData; bytes32 accountGasLimits; uint256 preVerificationGas; bytes32 gasFees; bytes paymasterAndData; bytes signature; }',
  'function handleOps(PackedUserOperation[] ops, address beneficiary)',
])
const quote = '/api/x402/fx?from=USD&to=EUR&amount=100'
/** High fees, to be mined ahead of all pending transactions. */
const fees = { maxFeePerGas: 10n ** 15n, maxPriorityFeePerGas: 10n ** 15n }
const usdc = sandboxTokens.USDC.address
const domain = { name: 'USDC', version: '2', chainId: 84532, verifyingContract: usdc }

const addresses = new Map<Person, Address>()

/** The address of a person's wallet, cached after its first read. */
export async function readAddress(person: Person): Promise<Address> {
  const known = addresses.get(person)
  if (known !== undefined) return known
  const { body } = await person.send('GET', '/api/wallets')
  const { safeAddress } = z.looseObject({ safeAddress: hex }).parse(body)
  addresses.set(person, safeAddress)
  return safeAddress
}

const reader = (rpcUrl: string) => createPublicClient({ chain: baseSepolia, transport: http(rpcUrl) })

/** Stablecoin balance of an address, in smallest units. */
export function tokenBalance(rpcUrl: string, symbol: string, holder: string): Promise<bigint> {
  const token = Object.entries(sandboxTokens).find(([name]) => name === symbol)?.[1]
  if (token === undefined) throw new Error(`${symbol} is not a supported stablecoin`)
  const args = [hex.parse(holder)] as const
  return reader(rpcUrl).readContract({
    address: token.address,
    abi: tokenAbi,
    functionName: 'balanceOf',
    args,
  })
}

async function sender(rpcUrl: string, key: PrivateKeyAccount) {
  const client = createWalletClient({ account: key, chain: baseSepolia, transport: http(rpcUrl) })
  await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'anvil_setBalance',
      params: [key.address, numberToHex(10n ** 26n)],
    }),
  })
  // Sequential: two concurrent sends would use one nonce.
  let last: Promise<unknown> = Promise.resolve()
  return (to: Address, data: Hex, gas: bigint): Promise<Hex> => {
    const sent = last.then(() => client.sendTransaction({ to, data, gas, ...fees }))
    last = sent.catch(() => undefined)
    return sent
  }
}

/** A person whose wallet is owned by an EVM key, or will be after `handOver`. */
export interface Owner {
  readonly person: Person
  /** Registers the key and makes a first transfer, which hands over the wallet. */
  handOver(): Promise<{ status: number }>
  transfer(transfer: { destination: string; amount: string }): Promise<{ status: number }>
  /** Signs the EIP-712 data of an intent. */
  sign(typedData: unknown): Promise<Hex>
  /** Moves USDC by an operation outside the gateway. */
  moveAlone(to: string, units: bigint): Promise<unknown>
  /** Gets an intent, spends its nonce on an empty call, and submits the intent anyway. */
  spendNonceThenTransfer(transfer: { destination: string; amount: string }): Promise<unknown>
}

/** Signs in a person whose wallet holds 400 USDC. */
export async function openOwner(origin: string, rpcUrl: string, email: string): Promise<Owner> {
  const person = await signInByEmail(origin, email)
  const key = privateKeyToAccount(generatePrivateKey())
  const send = await sender(rpcUrl, key)
  await requestJson(origin, 'POST', '/sandbox/faucet', {
    body: { address: await readAddress(person), token: 'USDC', amount: '400' },
  })
  const intentFor = async (transfer: { destination: string; amount: string }) => {
    const { body } = await person.send('POST', '/api/wallets/transfer/intent', transfer)
    return { transfer, intentId: String(body.intentId), typedData: safeOperation.parse(body.typedData) }
  }
  const confirm = async ({ transfer, intentId, typedData }: Awaited<ReturnType<typeof intentFor>>) => {
    const signature = await key.signTypedData(typedData as never)
    return person.send('POST', '/api/wallets/transfer', { ...transfer, intentId, signature })
  }
  const execute = async (operation: SafeOperation, call: { to: Address; data: Hex }) => {
    const signed = await repack(key, operation, call)
    const args = [[signed], key.address] as const
    const data = encodeFunctionData({ abi: entryPointAbi, functionName: 'handleOps', args })
    return send(operation.message.entryPoint, data, 2_000_000n)
  }
  return {
    person,
    handOver: async () => {
      const { address } = key
      const { body } = await person.send('POST', '/api/wallets/signers', { address })
      const signature = await key.signTypedData(body.typedData as never)
      await person.send('POST', '/api/wallets/signers', { address, signature })
      return confirm(await intentFor({ destination: key.address, amount: '0.01' }))
    },
    transfer: async (transfer) => confirm(await intentFor(transfer)),
    sign: (typedData) => key.signTypedData(typedData as never),
    moveAlone: async (to, units) => {
      const { typedData } = await intentFor({ destination: key.address, amount: '0.01' })
      const args = [hex.parse(to), units] as const
      await execute(typedData, {
        to: usdc,
        data: encodeFunctionData({ abi: tokenAbi, functionName: 'transfer', args }),
      })
    },
    spendNonceThenTransfer: async (transfer) => {
      const intent = await intentFor(transfer)
      const spent = execute(intent.typedData, { to: key.address, data: '0x' })
      await Promise.all([spent, confirm(intent)])
    },
  }
}

/** A signed operation of the wallet with another call under the same nonce. */
async function repack(
  key: PrivateKeyAccount,
  { domain: safeDomain, types, message }: SafeOperation,
  { to, data }: { to: Address; data: Hex },
) {
  const args = [to, 0n, data, 0] as const
  const callData = encodeFunctionData({ abi: safeAbi, functionName: 'executeUserOpWithErrorString', args })
  const typed = { domain: safeDomain, types, primaryType: 'SafeOp', message: { ...message, callData } }
  const signature = await key.signTypedData(typed as never)
  return {
    sender: message.safe,
    nonce: BigInt(message.nonce),
    initCode: '0x',
    callData,
    accountGasLimits: concat([
      numberToHex(BigInt(message.verificationGasLimit), { size: 16 }),
      numberToHex(BigInt(message.callGasLimit), { size: 16 }),
    ]),
    preVerificationGas: 0n,
    gasFees: pad('0x', { size: 32 }),
    paymasterAndData: '0x',
    signature: concat([pad('0x', { size: 6 }), numberToHex(message.validUntil, { size: 6 }), signature]),
  } as const
}

/** Validity of a payer's signature, in seconds. */
const VALID_S = 60

/** Interference by a payer while their payment is being settled. */
export type Race = 'none' | 'tiny' | 'cancel'

/** An outsider with tokens. */
export interface Outsider {
  readonly address: Address
  relay(caller: Person, how: { race: Race }): Promise<{ status: number }>
  buyQuote(how: { race: Race }): Promise<{ status: number }>
}

/** Creates an outsider with 1,000 USDC. */
export async function newOutsider(origin: string, rpcUrl: string): Promise<Outsider> {
  const key = privateKeyToAccount(generatePrivateKey())
  const { address } = key
  const send = await sender(rpcUrl, key)
  await requestJson(origin, 'POST', '/sandbox/faucet', { body: { address, token: 'USDC', amount: '1000' } })
  const sign = async (to: Address, value: bigint, nonce: Hex) => {
    const validBefore = BigInt(Math.floor(performance.timeOrigin / 1000 + performance.now() / 1000) + VALID_S)
    const message = { from: address, to, value, validAfter: 0n, validBefore, nonce }
    const primaryType = 'TransferWithAuthorization'
    const signature = await key.signTypedData({ domain, types: signedPaymentTypes, primaryType, message })
    const authorization = { ...message, value: `${value}`, validAfter: '0', validBefore: `${validBefore}` }
    return { message, signature, shown: authorization }
  }
  const interfere = async (race: Race, nonce: Hex) => {
    if (race === 'none') return
    if (race === 'cancel') {
      const types = {
        CancelAuthorization: [
          { name: 'authorizer', type: 'address' },
          { name: 'nonce', type: 'bytes32' },
        ],
      } as const
      const message = { authorizer: address, nonce }
      const signature = await key.signTypedData({
        domain,
        types,
        primaryType: 'CancelAuthorization',
        message,
      })
      const [r, s] = [signature.slice(0, 66), `0x${signature.slice(66, 130)}`]
      const args = [address, nonce, Number(`0x${signature.slice(130)}`), hex.parse(r), hex.parse(s)] as const
      await send(
        usdc,
        encodeFunctionData({ abi: tokenAbi, functionName: 'cancelAuthorization', args }),
        200_000n,
      )
      return
    }
    const { message, signature } = await sign(address, 1n, nonce)
    const { from, to, value, validAfter, validBefore } = message
    const args = [from, to, value, validAfter, validBefore, nonce, signature] as const
    await send(
      usdc,
      encodeFunctionData({ abi: tokenAbi, functionName: 'transferWithAuthorization', args }),
      200_000n,
    )
  }
  return {
    address,
    relay: async (caller, { race }) => {
      const nonce = generatePrivateKey()
      const { shown: authorization, signature } = await sign(await readAddress(caller), 2_000_000n, nonce)
      const body = { token: 'USDC', authorization: { ...authorization, signature } }
      const [relayed] = await Promise.all([
        caller.send('POST', '/api/transfers/gasless', body, { 'idempotency-key': nonce }),
        interfere(race, nonce),
      ])
      return relayed
    },
    buyQuote: async ({ race }) => {
      const nonce = generatePrivateKey()
      const { shown: authorization, signature } = await sign(stableTokens.payTo, 10_000n, nonce)
      const payload = { signature, authorization: authorization }
      const envelope = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload }
      const headers = { 'x-payment': Buffer.from(JSON.stringify(envelope)).toString('base64') }
      const purchase = requestJson(origin, 'GET', quote, { headers })
      return (await Promise.all([purchase, interfere(race, nonce)]))[0]
    },
  }
}
