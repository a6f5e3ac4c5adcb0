/** Sets up a development node: the smart accounts' contracts, the tokens and the multicall, as far as they are missing. */
import { concat, encodeFunctionData, getCreate2Address, pad, zeroAddress } from 'viem'
import { stablecoins } from '../../money.ts'
import type { Address, Hex } from '../chain.ts'
import { tokenAbi } from './abi.ts'
import { loadCreationCode } from './artifacts.ts'
import type { NodeClient } from './client.ts'
import {
  sandboxMulticallCode,
  sandboxStablecoinCode,
  sandboxTetherCode,
} from './contracts/sandbox-contracts.artifact.ts'
import { enableMinter, placeCode, sandboxMinter, sendAsMinter } from './development-node.ts'
import {
  type AccountContracts,
  canonicalContracts,
  multicallAddress,
  type SandboxToken,
  sandboxTokens,
} from './networks.ts'

/** Safe's own deployer. @see https://github.com/safe-global/safe-singleton-factory */
const safeDeployer: Address = '0x914d7Fec6aaC8cd542e72Bca78B30650d45643d7'
const safeDeployerCode: Hex =
  '0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3'

/** The deployer that anvil brings along. @see https://github.com/Arachnid/deterministic-deployment-proxy */
const commonDeployer: Address = '0x4e59b44847b379578588920cA78FbF26c0B4956C'

/** The salt that puts EntryPoint v0.7 at its address on every chain. */
const entryPointSalt: Hex = '0x90d8084deab30c2a37c45e8d47f49f2f7965183cb6990a98943ef94940681de3'
const noSalt = pad('0x', { size: 32 })

/**
 * Deploys what is missing; several gateways may do so on one node at once. `isFresh` where the tokens were.
 * @throws Error where something is still missing afterwards.
 */
export async function deployMissing(
  client: NodeClient,
): Promise<{ contracts: AccountContracts; isFresh: boolean }> {
  const plans = deployments()
  const contracts: AccountContracts = {
    entryPoint: plans.entryPoint.address,
    safe: plans.safe.address,
    proxyFactory: plans.proxyFactory.address,
    module: plans.module.address,
    moduleSetup: plans.moduleSetup.address,
  }
  await Promise.all([
    enableMinter(client),
    ensureCode(client, safeDeployer, safeDeployerCode),
    ensureCode(client, multicallAddress, sandboxMulticallCode),
  ])
  const [isFresh] = await Promise.all([
    ensureTokens(client),
    ...Object.values(plans).map((plan) => ensureDeployed(client, plan)),
  ])
  return { contracts, isFresh }
}

interface Deployment {
  readonly address: Address
  readonly deployer: Address
  readonly data: Hex
}

function deployments(): Record<keyof AccountContracts, Deployment> {
  const code = loadCreationCode()
  const plan = (deployer: Address, salt: Hex, bytecode: Hex): Deployment => ({
    address: getCreate2Address({ from: deployer, salt, bytecode }),
    deployer,
    data: concat([salt, bytecode]),
  })
  return {
    entryPoint: plan(commonDeployer, entryPointSalt, code.entryPoint),
    safe: plan(safeDeployer, noSalt, code.safe),
    proxyFactory: plan(safeDeployer, noSalt, code.proxyFactory),
    module: plan(
      safeDeployer,
      noSalt,
      concat([code.module, pad(canonicalContracts.entryPoint, { size: 32 })]),
    ),
    moduleSetup: plan(safeDeployer, noSalt, code.moduleSetup),
  }
}

async function ensureDeployed(client: NodeClient, { address, deployer, data }: Deployment): Promise<void> {
  if (await client.getCode({ address })) return
  // Another gateway may be first: what counts is not this transaction's success but the code that stands there.
  await sendAsMinter(client, { to: deployer, data, gas: 9_000_000n })
  if (!(await client.getCode({ address }))) throw new Error(`No contract could be deployed at ${address}.`)
}

async function ensureCode(client: NodeClient, address: Address, code: Hex): Promise<void> {
  if ((await client.getCode({ address })) !== code) await placeCode(client, address, code)
}

async function ensureTokens(client: NodeClient): Promise<boolean> {
  const missing = await Promise.all(
    stablecoins.map((symbol) => ensureToken(client, symbol, sandboxTokens[symbol])),
  )
  return missing.includes(true)
}

async function ensureToken(client: NodeClient, symbol: string, token: SandboxToken): Promise<boolean> {
  const { address, name, decimals, version, authorizations } = token
  await ensureCode(client, address, authorizations ? sandboxStablecoinCode : sandboxTetherCode)
  const minter = () => client.readContract({ address, abi: tokenAbi, functionName: 'minter' })
  if ((await minter()) !== zeroAddress) return false
  const args = [name, symbol, decimals, version, sandboxMinter] as const
  const data = encodeFunctionData({ abi: tokenAbi, functionName: 'initialize', args })
  const { status } = await sendAsMinter(client, { to: address, data, gas: 500_000n })
  if ((await minter()) === zeroAddress)
    throw new Error(`The token ${symbol} could not be set up at ${address}.`)
  return status === 'success'
}
