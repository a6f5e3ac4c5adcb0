/** A payment signed by its payer, relayed over HTTP by the built gateway on a real chain. */
import { createPublicClient, http, parseAbi } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { beforeAll, beforeEach, expect, it } from 'vitest'
import { z } from 'zod'
import type { Address, Chain } from '../../src/providers/chain/port.ts'
import { mirror, signAuthorization, signPermit } from '../tools/transfers/signed-payments.ts'
import { sharedGateway } from './gateway.ts'
import { mineWith } from './mined.ts'
import { newGuest, type Person, requestJson } from './people.ts'

const abi = parseAbi([
  'function balanceOf(address) view returns (uint256)',
  'function nonces(address) view returns (uint256)',
])
const address = z.templateLiteral(['0x', z.string()])
const credentials = z.object({
  chain: z.object({ rpcUrl: z.string(), tokens: z.object({ USDC: address }) }),
})
const payer = privateKeyToAccount(generatePrivateKey())
const newPayee = () => privateKeyToAccount(generatePrivateKey()).address

const origin = sharedGateway()
let guest: Person
let node: ReturnType<typeof createPublicClient>
let chain: Pick<Chain, 'id' | 'tokens' | 'signer'>
let sponsor: Address

beforeAll(async () => {
  guest = await newGuest(origin)
  const { rpcUrl, tokens } = credentials.parse(
    (await requestJson(origin, 'GET', '/sandbox/credentials')).body,
  ).chain
  node = createPublicClient({ transport: http(rpcUrl) })
  await requestJson(origin, 'POST', '/sandbox/faucet', {
    body: { address: payer.address, token: 'USDC', amount: '100' },
  })
  // A permit for another spender is refused; the error names the spender that the permit needs.
  const { body } = await relay({
    to: newPayee(),
    permit: {
      owner: payer.address,
      spender: newPayee(),
      value: '1',
      deadline: '4000000000',
      signature: `0x${'1'.repeat(130)}`,
    },
  })
  sponsor = address.parse(/the sponsor, (0x[0-9a-fA-F]{40})/.exec(String(body.detail))?.[1])
  const readContract = (call: { functionName: string; args?: readonly unknown[] | undefined }) =>
    node.readContract({
      address: tokens.USDC,
      abi,
      functionName: 'nonces',
      args: [address.parse(call.args?.[0])],
    })
  // The signing helpers read only the payer's nonce and the sponsor's address.
  chain = { id: 84532, tokens, signer: { address: sponsor, readContract } } as unknown as typeof chain
})
beforeEach(async () => {
  guest = await newGuest(origin)
})

const relay = (body: object) => guest.send('POST', '/api/transfers/gasless', { token: 'USDC', ...body })
const readReceived = (of: Address) =>
  node.readContract({ address: chain.tokens.USDC, abi, functionName: 'balanceOf', args: [of] })

it('relays an EIP-3009 authorization once', async () => {
  const to = newPayee()
  const authorization = await signAuthorization(chain, payer, { to, value: 5_000_000n })
  const block = await node.getBlockNumber({ cacheTime: 0 })
  expect(await relay({ authorization })).toMatchObject({
    status: 200,
    body: {
      status: 'confirmed',
      amount: '5',
      from: payer.address,
      to,
      transactionHash: expect.stringMatching(/^0x/),
    },
  })
  expect(await readReceived(to)).toBe(5_000_000n)
  expect(await mineWith(node, to, block)).toBe(1)
  expect(await relay({ authorization })).toMatchObject({
    status: 422,
    body: { code: 'authorization_rejected', reason: 'nonce_used' },
  })
  expect(await mineWith(node, to, block)).toBe(1)
})

it('relays a permit and transfers its allowance, once', async () => {
  const to = newPayee()
  const permit = await signPermit(chain, payer, { value: 3_000_000n })
  expect(await relay({ permit, to })).toMatchObject({
    status: 200,
    body: { status: 'confirmed', amount: '3', to },
  })
  expect(await readReceived(to)).toBe(3_000_000n)
  expect(await relay({ permit, to })).toMatchObject({ status: 422, body: { reason: 'nonce_used' } })
  expect(await readReceived(to)).toBe(3_000_000n)
})

it('rejects what the token would reject before any gas is spent, with the reason', async () => {
  const to = newPayee()
  const good = await signAuthorization(chain, payer, { to, value: 1n })
  const now = BigInt(Math.floor(Date.now() / 1000))
  const block = await node.getBlockNumber({ cacheTime: 0 })
  const attempts = {
    signature: { ...good, value: '2' },
    'signature (mirrored)': { ...good, signature: mirror(good.signature) },
    expired: await signAuthorization(chain, payer, { to, validBefore: now - 10n }),
    not_yet_valid: await signAuthorization(chain, payer, { to, validAfter: now + 1000n }),
    domain: await signAuthorization(chain, payer, { to, domain: { chainId: 8453 } }),
    balance: await signAuthorization(chain, payer, { to, value: 1_000_000_000n }),
  }
  for (const [reason, authorization] of Object.entries(attempts))
    expect(await relay({ authorization })).toMatchObject({
      status: 422,
      body: { code: 'authorization_rejected', reason: reason.split(' ')[0], hint: expect.any(String) },
    })
  expect(await mineWith(node, to, block)).toBe(0)
})

it('credits a gateway wallet once, and the books match the chain', async () => {
  const { body } = await guest.send('GET', '/api/wallets')
  const wallet = address.parse(body.safeAddress)
  const usdc = z.array(z.looseObject({ token: z.string(), amount: z.string() }))
  const findAmount = (balances: unknown) => usdc.parse(balances).find(({ token }) => token === 'USDC')?.amount
  expect(findAmount(body.balances)).toBe('1000')
  const authorization = await signAuthorization(chain, payer, { to: wallet, value: 7_000_000n })
  expect(await relay({ authorization })).toMatchObject({ status: 200 })
  expect(findAmount((await guest.send('GET', '/api/wallets')).body.balances)).toBe('1007')
  expect(await readReceived(wallet)).toBe(1_007_000_000n)
})
