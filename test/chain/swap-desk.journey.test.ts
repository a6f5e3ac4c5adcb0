/** The swap desk on a real node: whatever a route's call data is, what was paid is swapped at the minimum or stays with its payer. */
import { createHash } from 'node:crypto'
import {
  createPublicClient,
  createWalletClient,
  encodeFunctionData,
  http,
  keccak256,
  parseAbi,
  toHex,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { swapDeskAbi, tokenAbi } from '../../src/chain/contracts/abi.ts'
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
import type { Address, Hex } from '../../src/providers/chain/port.ts'
import {
  liarAbi,
  poolAbi,
  sandboxLiarAddress,
  sandboxPoolAddress,
} from '../../src/providers/sandbox-market.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'

const DESK = ownContracts.swapDesk.address
const [usdc, eurc, usdt] = [
  sandboxTokens.USDC.address,
  sandboxTokens.EURC.address,
  sandboxTokens.USDT.address,
]
const payer = privateKeyToAccount(keccak256(toHex('payer of the desk')))
const UNITS = 100_000_000n
const allowanceAbi = parseAbi([
  'function allowance(address owner, address spender) view returns (uint256)',
  'function approve(address spender, uint256 units)',
])
const multicallAbi = parseAbi([
  'struct Call { address target; bytes callData; }',
  'function tryAggregate(bool requireSuccess, Call[] calls) payable',
])

/** Bytes that depend on a seed alone. */
function randomBytes(seed: number, length: number): Hex {
  let bytes = ''
  for (let block = 0; bytes.length < length * 2; block += 1)
    bytes += createHash('sha256').update(`${seed} ${block}`).digest('hex')
  return `0x${bytes.slice(0, length * 2)}`
}

describe.skipIf(!hasAnvil())('the swap desk', () => {
  let node: AnvilProcess
  let session: EvmSession
  beforeAll(async () => {
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
    const client = createNodeClient(localNodeOptions('base-sepolia', node.url))
    session = await openDevelopmentSession(client, keccak256(toHex('desk')), sandboxTokensOn('base-sepolia'))
    const data = encodeFunctionData({
      abi: tokenAbi,
      functionName: 'mintBatch',
      args: [[payer.address], [10n ** 12n]],
    })
    for (const to of [usdc, eurc, usdt]) await session.relayer.send({ to, data, gas: 500_000n })
    await session.relayer.send({ to: payer.address, data: '0x', value: 10n ** 18n, gas: 100_000n })
  }, 60_000)
  afterAll(() => node?.stop())

  const reader = () => createPublicClient({ chain: baseSepolia, transport: http(node.url) })
  const read = (token: Address, holder: Address) =>
    reader().readContract({ address: token, abi: tokenAbi, functionName: 'balanceOf', args: [holder] })
  const readApprovals = async () => {
    const pairs = [usdc, eurc, usdt].flatMap((token) =>
      [sandboxPoolAddress, sandboxLiarAddress, payer.address].map((spender) => ({ token, spender })),
    )
    const units = await Promise.all(
      pairs.map(({ token, spender }) =>
        reader().readContract({
          address: token,
          abi: allowanceAbi,
          functionName: 'allowance',
          args: [DESK, spender],
        }),
      ),
    )
    return units.reduce((sum, one) => sum + one, 0n)
  }
  const buildPoolData = (minimum: bigint, to: Address = DESK) =>
    encodeFunctionData({
      abi: poolAbi,
      functionName: 'swap',
      args: [usdc, eurc, UNITS, minimum, to, 2n ** 40n],
    })
  interface Route {
    readonly target: Address
    readonly spender: Address
    readonly data: Hex
    readonly minReceived: bigint
    readonly receiver?: Address
    readonly buy?: Address
  }
  const buildOrder = ({ receiver = payer.address, buy = eurc, ...route }: Route) => ({
    ...{ sell: usdc, units: UNITS, buy, receiver },
    ...route,
  })
  /** Pays the desk and swaps in one transaction, as a Safe does; @returns whether it went through. */
  const swap = async (route: Route): Promise<boolean> => {
    const wallet = createWalletClient({ account: payer, chain: baseSepolia, transport: http(node.url) })
    const calls = [
      {
        target: usdc,
        callData: encodeFunctionData({
          abi: parseAbi(['function transferFrom(address from, address to, uint256 units)']),
          functionName: 'transferFrom',
          args: [payer.address, DESK, UNITS],
        }),
      },
      {
        target: DESK,
        callData: encodeFunctionData({ abi: swapDeskAbi, functionName: 'swap', args: [buildOrder(route)] }),
      },
    ]
    const approve = await wallet.writeContract({
      ...{ address: usdc, abi: allowanceAbi, functionName: 'approve', args: [multicallAddress, UNITS] },
    })
    await reader().waitForTransactionReceipt({ hash: approve })
    const hash = await wallet.writeContract({
      ...{ address: multicallAddress, abi: multicallAbi, functionName: 'tryAggregate', args: [true, calls] },
      gas: 3_000_000n,
    })
    return (await reader().waitForTransactionReceipt({ hash })).status === 'success'
  }
  const expectUntouched = async (act: () => Promise<boolean>) => {
    const before = await Promise.all([usdc, eurc, usdt].map((token) => read(token, payer.address)))
    expect(await act()).toBe(false)
    expect(await Promise.all([usdc, eurc, usdt].map((token) => read(token, payer.address)))).toEqual(before)
    expect(await Promise.all([usdc, eurc, usdt].map((token) => read(token, DESK)))).toEqual([0n, 0n, 0n])
    expect(await readApprovals()).toBe(0n)
  }
  const honest = { target: sandboxPoolAddress, spender: sandboxPoolAddress }

  it('hands over what an honest route buys', async () => {
    const before = await read(eurc, payer.address)
    expect(await swap({ ...honest, data: buildPoolData(0n), minReceived: 93_000_000n })).toBe(true)
    expect((await read(eurc, payer.address)) - before).toBeGreaterThanOrEqual(93_000_000n)
    expect(await read(usdc, DESK)).toBe(0n)
    expect(await readApprovals()).toBe(0n)
  })

  it('moves nothing below the minimum', async () => {
    await expectUntouched(() => swap({ ...honest, data: buildPoolData(0n), minReceived: 94_000_000n }))
  })

  it('moves nothing for a route that pays somebody else, even the payer', async () => {
    for (const to of [payer.address, sandboxLiarAddress])
      await expectUntouched(() => swap({ ...honest, data: buildPoolData(0n, to), minReceived: 1n }))
  })

  it('makes no call to the tokens, to itself or to an address without code, and gives no approval', async () => {
    const approve = encodeFunctionData({
      abi: allowanceAbi,
      functionName: 'approve',
      args: [payer.address, 2n ** 255n],
    })
    const reenter = encodeFunctionData({
      abi: swapDeskAbi,
      functionName: 'swap',
      args: [buildOrder({ ...honest, data: buildPoolData(0n), minReceived: 0n })],
    })
    for (const [target, data] of [
      [usdc, approve],
      [eurc, approve],
      [usdt, approve],
      [DESK, reenter],
      [payer.address, approve],
      [sandboxPoolAddress, '0x'],
    ] as const)
      await expectUntouched(() => swap({ target, spender: payer.address, data, minReceived: 0n }))
  })

  it('moves nothing for any of the routes that lie, but the one that leaves a part unsold', async () => {
    const pool = sandboxPoolAddress
    for (const lie of [0, 1, 2, 3, 4])
      await expectUntouched(() => {
        const args = [lie, pool, usdc, eurc, UNITS, payer.address, usdt] as const
        const data = encodeFunctionData({ abi: liarAbi, functionName: 'swap', args })
        return swap({
          target: sandboxLiarAddress,
          spender: sandboxLiarAddress,
          data,
          minReceived: 90_000_000n,
        })
      })
  })

  it('moves nothing for random call data to any contract', async () => {
    const targets = [sandboxPoolAddress, sandboxLiarAddress, usdt, session.contracts.allowances]
    const selectors = [
      ...['approve(address,uint256)', 'transfer(address,uint256)', 'transferFrom(address,address,uint256)'],
      'swap(address,address,uint256,uint256,address,uint256)',
    ].map((signature) => keccak256(toHex(signature)).slice(2, 10))
    for (let seed = 0; seed < 48; seed += 1) {
      const target = targets[seed % targets.length] ?? usdt
      const selector = selectors[Math.floor(seed / targets.length) % selectors.length]
      const random = randomBytes(seed, 4 + 32 * (seed % 7))
      const data: Hex = seed % 3 === 0 ? random : `0x${selector}${random.slice(10)}`
      await expectUntouched(() => swap({ target, spender: target, data, minReceived: 1n }))
    }
  }, 60_000)

  it('runs as a delegate of a Safe only by its own functions for that', async () => {
    const args = [buildOrder({ ...honest, data: buildPoolData(0n), minReceived: 0n })] as const
    const call = (functionName: 'swapFromSafe' | 'swap') =>
      reader().call({
        account: payer.address,
        to: DESK,
        data: encodeFunctionData({ abi: swapDeskAbi, functionName, args }),
      })
    await expect(call('swapFromSafe')).rejects.toThrow()
    // The desk was paid nothing.
    await expect(call('swap')).rejects.toThrow()
  })
})
