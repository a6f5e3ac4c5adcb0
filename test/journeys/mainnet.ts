/**
 * A chain with the id of a public one, on this machine: its contracts are at their public addresses, with the installed
 * code, and its tokens at the issuer's addresses, with the issuer's EIP-712 domains.
 */
import { createWalletClient, erc20Abi, http, keccak256, stringToHex, toHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { mintTokens } from '../../src/chain/mint.ts'
import { findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { deployMissing } from '../../src/chain/node/deploy.ts'
import { createLanes } from '../../src/chain/relay/lanes.ts'
import { createNodeClient, localNodeOptions, type NodeClient } from '../../src/chain/rpc/client.ts'
import { placeCode } from '../../src/chain/rpc/development-node.ts'
import {
  canonicalContracts,
  listIssuedTokens,
  mapAddresses,
  ownContracts,
} from '../../src/chain/rpc/networks.ts'
import type { ChainName } from '../../src/core/money/chains.ts'
import type { Address, Hex } from '../../src/providers/chain/port.ts'

/** @property payer a person outside, with 10,000 USDC. */
export interface Mainnet {
  readonly url: string
  readonly client: NodeClient
  readonly usdc: Address
  readonly payer: ReturnType<typeof privateKeyToAccount>
  request(method: string, params: readonly unknown[]): Promise<unknown>
  giveGas(address: Address): Promise<void>
  readBalance(address: Address): Promise<bigint>
  /** Sends USDC of the payer. @returns the transaction's hash. */
  pay(to: Address, units: bigint): Promise<Hex>
  close(): Promise<void>
}

/** @param hasOwnContracts false: the gateway, or `bursar chain deploy`, deploys them. */
export async function startMainnet(
  name: ChainName,
  { hasOwnContracts = false }: { readonly hasOwnContracts?: boolean } = {},
): Promise<Mainnet> {
  const anvil = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000, name, [
    '--slots-in-an-epoch',
    '1',
  ])
  const client = createNodeClient(localNodeOptions(name, anvil.url))
  const request = (method: string, params: readonly unknown[]) => client.transport.request({ method, params })
  const tokens = listIssuedTokens(name)
  const addresses = mapAddresses(tokens)
  const relayer = createLanes(client, keccak256(stringToHex(anvil.url)), Object.values(addresses))
  const deployed = await deployMissing(client, relayer, tokens)
  for (const [contract, address] of Object.entries(canonicalContracts)) {
    const installed = Object.entries(deployed).find(([one]) => one === contract)?.[1] ?? address
    if (installed !== address)
      await placeCode(client, address, (await client.getCode({ address: installed })) ?? '0x')
  }
  if (!hasOwnContracts)
    for (const { address } of Object.values(ownContracts)) {
      await placeCode(client, address, '0x')
      // CREATE2 refuses an address whose account has sent or created something.
      await request('anvil_setNonce', [address, '0x0'])
    }
  const payer = privateKeyToAccount(generatePrivateKey())
  const giveGas = async (address: Address) => {
    await request('anvil_setBalance', [address, toHex(10n ** 20n)])
  }
  await giveGas(payer.address)
  await mintTokens(relayer, { name, tokens: addresses }, [
    { token: 'USDC', to: payer.address, units: 10_000_000_000n },
  ])
  // Blocks come at a pace of their own, like those of a public chain.
  await request('evm_setIntervalMining', [1])
  const usdc = addresses.USDC
  const wallet = createWalletClient({ account: payer, chain: client.chain, transport: http(anvil.url) })
  return {
    url: anvil.url,
    client,
    usdc,
    payer,
    request,
    giveGas,
    readBalance: (address) =>
      client.readContract({ address: usdc, abi: erc20Abi, functionName: 'balanceOf', args: [address] }),
    pay: (to, units) =>
      wallet.writeContract({ address: usdc, abi: erc20Abi, functionName: 'transfer', args: [to, units] }),
    close: () => anvil.stop(),
  }
}
