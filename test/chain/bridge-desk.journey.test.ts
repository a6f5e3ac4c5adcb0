/** The bridge desk on a real node: what was paid is burned for the wallet that paid, exactly, or stays with its payer. */
import { createHash } from 'node:crypto'
import {
  createPublicClient,
  createWalletClient,
  decodeEventLog,
  encodeFunctionData,
  http,
  keccak256,
  parseAbi,
  toHex,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bridgeDeskAbi, tokenAbi } from '../../src/chain/contracts/abi.ts'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { openDevelopmentSession } from '../../src/chain/node/development-session.ts'
import type { EvmSession } from '../../src/chain/node/evm-session.ts'
import { createNodeClient, localNodeOptions } from '../../src/chain/rpc/client.ts'
import {
  multicallAddress,
  ownContracts,
  sandboxTokens,
  sandboxTokensOn,
} from '../../src/chain/rpc/networks.ts'
import {
  cctpOn,
  messageSentEvent,
  parseBurnMessage,
  sandboxMessengerAddress,
} from '../../src/providers/cctp.ts'
import type { Address } from '../../src/providers/chain/port.ts'
import { sandboxPoolAddress } from '../../src/providers/sandbox-market.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'

const DESK = ownContracts.bridgeDesk.address
const [usdc, eurc] = [sandboxTokens.USDC.address, sandboxTokens.EURC.address]
const payer = privateKeyToAccount(keccak256(toHex('payer of the bridge desk')))
const UNITS = 100_000_000n
const erc20 = parseAbi([
  'function allowance(address owner, address spender) view returns (uint256)',
  'function approve(address spender, uint256 units)',
  'function transfer(address to, uint256 units)',
  'function transferFrom(address from, address to, uint256 units)',
])
const multicallAbi = parseAbi([
  'struct Call { address target; bytes callData; }',
  'function tryAggregate(bool requireSuccess, Call[] calls) payable',
])

describe.skipIf(!hasAnvil())('the bridge desk', () => {
  let node: AnvilProcess
  let session: EvmSession
  beforeAll(async () => {
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
    const client = createNodeClient(localNodeOptions('base-sepolia', node.url))
    session = await openDevelopmentSession(
      client,
      keccak256(toHex('bridge')),
      sandboxTokensOn('base-sepolia'),
    )
    const args = [[payer.address], [10n ** 12n]] as const
    const data = encodeFunctionData({ abi: tokenAbi, functionName: 'mintBatch', args })
    for (const to of [usdc, eurc]) await session.relayer.send({ to, data, gas: 500_000n })
    await session.relayer.send({ to: payer.address, data: '0x', value: 10n ** 18n, gas: 100_000n })
    for (const address of [usdc, eurc])
      await writer().writeContract({
        ...{ address, abi: erc20, functionName: 'approve', args: [multicallAddress, 10n ** 30n] },
      })
  }, 60_000)
  afterAll(() => node?.stop())

  const writer = () => createWalletClient({ account: payer, chain: baseSepolia, transport: http(node.url) })
  const reader = () => createPublicClient({ chain: baseSepolia, transport: http(node.url) })
  const read = (token: Address, holder: Address) =>
    reader().readContract({ address: token, abi: tokenAbi, functionName: 'balanceOf', args: [holder] })
  const order = (changes: object = {}) => ({
    token: usdc,
    units: UNITS,
    messenger: sandboxMessengerAddress,
    domain: 3,
    maxFee: 0n,
    minFinality: 2_000,
    ...changes,
  })
  /** Pays the desk and burns in one transaction, as a Safe does. */
  const bridge = async (changes: object = {}, paid = UNITS, receiver: Address = payer.address) => {
    const calls = [
      {
        target: order(changes).token,
        callData: encodeFunctionData({
          ...{ abi: erc20, functionName: 'transferFrom', args: [payer.address, DESK, paid] },
        }),
      },
      {
        target: DESK,
        callData: encodeFunctionData({
          ...{ abi: bridgeDeskAbi, functionName: 'bridge', args: [order(changes), receiver] },
        }),
      },
    ]
    const call = { address: multicallAddress, abi: multicallAbi, functionName: 'tryAggregate' } as const
    const { request } = await reader().simulateContract({ ...call, args: [true, calls], account: payer })
    const hash = await writer().writeContract(request)
    return reader().waitForTransactionReceipt({ hash })
  }
  const readApprovals = () =>
    Promise.all(
      [sandboxMessengerAddress, sandboxPoolAddress, payer.address].map((spender) =>
        reader().readContract({
          address: usdc,
          abi: erc20,
          functionName: 'allowance',
          args: [DESK, spender],
        }),
      ),
    )

  it('burns exactly what was paid, for the receiver, and leaves no approval', async () => {
    const before = await read(usdc, payer.address)
    const { logs } = await bridge({ maxFee: 7n, minFinality: 1_000 })
    expect(before - (await read(usdc, payer.address))).toBe(UNITS)
    expect(await read(usdc, DESK)).toBe(0n)
    expect(await read(usdc, sandboxMessengerAddress)).toBe(0n)
    expect(await readApprovals()).toEqual([0n, 0n, 0n])
    const { transmitter } = cctpOn('base-sepolia')
    const log = logs.find(({ address }) => address.toLowerCase() === transmitter.toLowerCase())
    const { args } = decodeEventLog({
      ...{ abi: [messageSentEvent], data: log?.data ?? '0x', topics: log?.topics ?? [] },
    })
    expect(parseBurnMessage(args.message)).toMatchObject({
      ...{ source: 6, destination: 3, minFinality: 1_000, finality: 0 },
      recipient: sandboxMessengerAddress.toLowerCase(),
      burn: {
        token: usdc.toLowerCase(),
        recipient: payer.address.toLowerCase(),
        units: UNITS,
        sender: DESK.toLowerCase(),
        ...{ maxFee: 7n, feeExecuted: 0n, expirationBlock: 0n },
      },
    })
  })

  it('is neither helped nor hindered by tokens that somebody left at it', async () => {
    const args = [DESK, 5n] as const
    const hash = await writer().writeContract({ address: usdc, abi: erc20, functionName: 'transfer', args })
    await reader().waitForTransactionReceipt({ hash })
    await bridge()
    expect(await read(usdc, DESK)).toBe(5n)
    await expect(bridge({}, UNITS - 6n)).rejects.toThrow()
  })

  it.each([
    ['it was not paid', {}, 0n],
    ['nothing is at the messenger', { messenger: payer.address }, UNITS],
    ['the messenger burns nothing', { messenger: sandboxPoolAddress }, UNITS],
    ['the messenger is the token', { messenger: usdc }, UNITS],
    ['the domain is unknown', { domain: 99 }, UNITS],
    ['the domain is its own', { domain: 6 }, UNITS],
    ['the fee takes everything', { maxFee: UNITS }, UNITS],
    ['the token is another', { token: eurc }, UNITS],
  ])('reverts when %s', async (_reason, changes, paid) => {
    const before = [await read(usdc, payer.address), await read(eurc, payer.address)]
    await expect(bridge(changes, paid)).rejects.toThrow()
    expect([await read(usdc, payer.address), await read(eurc, payer.address)]).toEqual(before)
    expect(await readApprovals()).toEqual([0n, 0n, 0n])
  })

  it('runs its functions for Safes by delegatecall only', async () => {
    const data = encodeFunctionData({ abi: bridgeDeskAbi, functionName: 'bridgeFromSafe', args: [order()] })
    await expect(reader().call({ to: DESK, data, account: payer.address })).rejects.toThrow()
  })

  it('moves nobody’s money by random orders', async () => {
    const before = await read(usdc, payer.address)
    for (let seed = 0; seed < 60; seed += 1) {
      const bytes = createHash('sha256').update(`order ${seed}`).digest()
      const pick = (list: readonly Address[], at: number) => list[(bytes[at] ?? 0) % list.length]
      const all = [usdc, eurc, sandboxMessengerAddress, sandboxPoolAddress, payer.address, DESK]
      const changes = {
        token: pick(all, 0),
        messenger: pick(all, 1),
        units: bytes.readBigUInt64BE(8) % 10n ** 9n,
        domain: (bytes[2] ?? 0) % 8,
        maxFee: BigInt(bytes[3] ?? 0),
        minFinality: bytes.readUInt16BE(4),
      }
      const call = {
        abi: bridgeDeskAbi,
        functionName: 'bridge',
        args: [order(changes), payer.address],
      } as const
      // Unpaid: the five units that lie there are the most that one can burn.
      await reader()
        .simulateContract({ address: DESK, ...call, account: session.relayer.address })
        .then(({ request }) => expect(request.args[0].units).toBeLessThanOrEqual(5n))
        .catch((error: unknown) => expect(String(error)).toContain('revert'))
    }
    expect(await read(usdc, payer.address)).toBe(before)
  })
})
