/** Sets up a development node: deploys missing contracts of the smart accounts, the tokens, the multicall and those of x402. */
import { concat, encodeFunctionData, getCreate2Address, keccak256, pad } from 'viem'
import { type Stablecoin, stablecoins } from '../../core/money/money.ts'
import { sandboxMessengerAddress, sandboxTransmitterAddress } from '../../providers/cctp.ts'
import type { Address, Hex } from '../../providers/chain/port.ts'
import { channelsAddress, depositCollectorAddress } from '../../providers/payment-channels.ts'
import { escrowAddress, escrowCollectorAddress } from '../../providers/payment-escrow.ts'
import { poolAbi, sandboxLiarAddress, sandboxPoolAddress } from '../../providers/sandbox-market.ts'
import { tokenAbi } from '../contracts/abi.ts'
import { loadCreationCode } from '../contracts/artifacts.ts'
import {
  sandboxChannelsCode,
  sandboxDepositCollectorCode,
  sandboxEscrowCode,
  sandboxEscrowCollectorCode,
  sandboxLiarCode,
  sandboxMessengerCode,
  sandboxMulticallCode,
  sandboxPermit2Code,
  sandboxPoolCode,
  sandboxStablecoinCode,
  sandboxTetherCode,
  sandboxTransmitterCode,
  sandboxUptoProxyCode,
} from '../contracts/sandbox-contracts.artifact.ts'
import type { Relayer } from '../relay/relayer.ts'
import type { NodeClient } from '../rpc/client.ts'
import { grantMinting, placeCode } from '../rpc/development-node.ts'
import {
  type AccountContracts,
  canonicalContracts,
  commonDeployer,
  multicallAddress,
  ownContracts,
  permit2Address,
  type SandboxToken,
  type SandboxTokens,
  uptoProxyAddress,
} from '../rpc/networks.ts'

/** Safe's own deployer. @see https://github.com/safe-global/safe-singleton-factory */
const safeDeployer: Address = '0x914d7Fec6aaC8cd542e72Bca78B30650d45643d7'
const safeDeployerCode: Hex =
  '0x7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3'

/** Salt that puts EntryPoint v0.7 at its address on every chain. */
const entryPointSalt: Hex = '0x90d8084deab30c2a37c45e8d47f49f2f7965183cb6990a98943ef94940681de3'
const noSalt = pad('0x', { size: 32 })

/** Prices of whole tokens in the sandbox's market, in millionths of a US dollar. */
const marketPrices: Readonly<Record<Stablecoin, bigint>> = {
  USDC: 1_000_000n,
  USDT: 1_000_000n,
  PYUSD: 1_000_000n,
  EURC: 1_070_500n,
}

/** Units of each token in the sandbox's market: more than can be bought from it. */
const MARKET_UNITS = 200_000_000_000_000n

/** Stand-ins for the contracts of x402, at their addresses. */
const x402StandIns = [
  [permit2Address, sandboxPermit2Code],
  [uptoProxyAddress, sandboxUptoProxyCode],
  [channelsAddress, sandboxChannelsCode],
  [depositCollectorAddress, sandboxDepositCollectorCode],
  [escrowAddress, sandboxEscrowCode],
  [escrowCollectorAddress, sandboxEscrowCollectorCode],
] as const

/** keccak256 of the stand-ins for the contracts of x402. */
export const standInHashes: ReadonlySet<Hex> = new Set(x402StandIns.map(([, code]) => keccak256(code)))

/**
 * Deploys missing contracts; several gateways may do so on one node concurrently.
 * @returns the addresses of the account contracts.
 * @throws Error when a contract is still missing afterwards.
 */
export async function deployMissing(
  client: NodeClient,
  relayer: Relayer,
  tokens: SandboxTokens,
): Promise<AccountContracts> {
  const plans = deployments()
  await Promise.all([
    ensureCode(client, safeDeployer, safeDeployerCode),
    ensureCode(client, multicallAddress, sandboxMulticallCode),
    ...x402StandIns.map(([address, code]) => ensureCode(client, address, code)),
    ensureCode(client, sandboxPoolAddress, sandboxPoolCode),
    ensureCode(client, sandboxLiarAddress, sandboxLiarCode),
    ensureCode(client, sandboxTransmitterAddress, sandboxTransmitterCode),
    ensureCode(client, sandboxMessengerAddress, sandboxMessengerCode),
    // The bridge burns and mints USDC.
    grantMinting(client, [tokens.USDC.address], sandboxMessengerAddress),
  ])
  await Promise.all([
    ...Object.entries(tokens).map(([symbol, token]) => ensureToken(client, relayer, symbol, token)),
    ...Object.values(plans).map((plan) => ensureDeployed(client, relayer, plan)),
  ])
  await ensureMarket(client, relayer, tokens)
  return listAddresses(plans)
}

/**
 * Addresses of the contracts on a development node; for some, the installed code differs from the code at the usual
 * address.
 */
export function developmentContracts(): AccountContracts {
  return listAddresses(deployments())
}

function listAddresses(plans: Record<keyof AccountContracts, Deployment>): AccountContracts {
  const address = (name: keyof AccountContracts) => plans[name].address
  return {
    entryPoint: address('entryPoint'),
    safe: address('safe'),
    proxyFactory: address('proxyFactory'),
    module: address('module'),
    moduleSetup: address('moduleSetup'),
    passkeySigners: address('passkeySigners'),
    passkeyVerifier: address('passkeyVerifier'),
    allowances: address('allowances'),
    walletSetup: address('walletSetup'),
    swapDesk: address('swapDesk'),
    bridgeDesk: address('bridgeDesk'),
  }
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
    passkeySigners: plan(safeDeployer, noSalt, code.passkeySigners),
    passkeyVerifier: plan(safeDeployer, noSalt, code.passkeyVerifier),
    allowances: { ...ownContracts.allowances, deployer: commonDeployer },
    walletSetup: { ...ownContracts.walletSetup, deployer: commonDeployer },
    swapDesk: { ...ownContracts.swapDesk, deployer: commonDeployer },
    bridgeDesk: { ...ownContracts.bridgeDesk, deployer: commonDeployer },
  }
}

async function ensureDeployed(
  client: NodeClient,
  relayer: Relayer,
  { address, deployer, data }: Deployment,
): Promise<void> {
  if (await client.getCode({ address })) return
  // Another gateway may be first, so the code at the address counts, not the success of this transaction.
  await relayer.send({ to: deployer, data, gas: 9_000_000n })
  if (!(await client.getCode({ address }))) throw new Error(`No contract could be deployed at ${address}.`)
}

async function ensureCode(client: NodeClient, address: Address, code: Hex): Promise<void> {
  if ((await client.getCode({ address })) !== code) await placeCode(client, address, code)
}

async function ensureToken(
  client: NodeClient,
  relayer: Relayer,
  symbol: string,
  token: SandboxToken,
): Promise<void> {
  const { address, name, decimals, version, authorizations } = token
  await ensureCode(client, address, authorizations ? sandboxStablecoinCode : sandboxTetherCode)
  const isReady = async () =>
    (await client.readContract({ address, abi: tokenAbi, functionName: 'decimals' })) === decimals
  if (await isReady()) return
  const args = [name, symbol, decimals, version] as const
  const data = encodeFunctionData({ abi: tokenAbi, functionName: 'initialize', args })
  await relayer.send({ to: address, data, gas: 500_000n })
  if (!(await isReady())) throw new Error(`The token ${symbol} could not be set up at ${address}.`)
}

/** Prices the tokens in the sandbox's market, and mints its liquidity. */
async function ensureMarket(client: NodeClient, relayer: Relayer, tokens: SandboxTokens): Promise<void> {
  for (const symbol of stablecoins) {
    const token = tokens[symbol]
    if (token === undefined) continue
    const pool = { address: sandboxPoolAddress, abi: poolAbi } as const
    const readPrice = () => client.readContract({ ...pool, functionName: 'prices', args: [token.address] })
    if ((await readPrice()) === 0n) {
      const args = [token.address, marketPrices[symbol]] as const
      await relayer.send({
        to: sandboxPoolAddress,
        data: encodeFunctionData({ abi: poolAbi, functionName: 'price', args }),
        gas: 200_000n,
      })
      const mint = [[sandboxPoolAddress], [MARKET_UNITS]] as const
      await relayer.send({
        to: token.address,
        data: encodeFunctionData({ abi: tokenAbi, functionName: 'mintBatch', args: mint }),
        gas: 300_000n,
      })
    }
    if ((await readPrice()) === 0n) throw new Error(`The market has no price of ${symbol}.`)
  }
}
