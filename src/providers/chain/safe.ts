/**
 * The smart account of an account: a Safe that one owner signs for, with the 4337 module on. Its address follows from the
 * account's id alone, so it is the same before it is deployed and on every new chain.
 */
import {
  concat,
  encodeFunctionData,
  getCreate2Address,
  keccak256,
  numberToHex,
  pad,
  stringToHex,
  zeroAddress,
} from 'viem'
import type { Address, Hex } from '../chain.ts'
import { safeAbi } from './abi.ts'
import type { NodeClient } from './client.ts'
import type { AccountContracts } from './networks.ts'

/** A Safe, deployed or not. @property initCode what an operation carries to deploy it. */
export interface SafeAccount {
  readonly address: Address
  readonly initCode: Hex
}

/** Computes the Safe of an account's id. */
export type SafeOf = (accountId: string) => SafeAccount

/** Reads the one thing that depends on the factory, its proxies' code, and answers the computation. */
export async function createSafeOf(
  client: NodeClient,
  contracts: AccountContracts,
  owner: Address,
): Promise<SafeOf> {
  const proxyCode = await client.readContract({
    address: contracts.proxyFactory,
    abi: safeAbi,
    functionName: 'proxyCreationCode',
  })
  const bytecodeHash = keccak256(concat([proxyCode, pad(contracts.safe, { size: 32 })]))
  const setup = setupCall(contracts, owner)
  const setupHash = keccak256(setup)
  return (accountId) => {
    const saltNonce = BigInt(keccak256(stringToHex(accountId)))
    const salt = keccak256(concat([setupHash, numberToHex(saltNonce, { size: 32 })]))
    const args = [contracts.safe, setup, saltNonce] as const
    return {
      address: getCreate2Address({ from: contracts.proxyFactory, salt, bytecodeHash }),
      get initCode() {
        const create = encodeFunctionData({ abi: safeAbi, functionName: 'createProxyWithNonce', args })
        return concat([contracts.proxyFactory, create])
      },
    }
  }
}

function setupCall({ module, moduleSetup }: AccountContracts, owner: Address): Hex {
  const enable = encodeFunctionData({ abi: safeAbi, functionName: 'enableModules', args: [[module]] })
  const args = [[owner], 1n, moduleSetup, enable, module, zeroAddress, 0n, zeroAddress] as const
  return encodeFunctionData({ abi: safeAbi, functionName: 'setup', args })
}
