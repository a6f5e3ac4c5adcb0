/**
 * The contracts that money depends on, compared with what the gateway expects: pinned hashes of the code where it is
 * known, and otherwise what the contract says about itself. Reads only.
 */
import { domainSeparator, keccak256 } from 'viem'
import { chainFacts } from '../../core/money/chains.ts'
import { assetDecimals, type Stablecoin, stablecoins } from '../../core/money/money.ts'
import type { Address, Hex } from '../../providers/chain/port.ts'
import { moduleAbi, tokenAbi } from '../contracts/abi.ts'
import { isConnectionError } from '../relay/refusal.ts'
import { type NodeClient, requireChainName } from '../rpc/client.ts'
import { type AccountContracts, codeHashes, ownContracts } from '../rpc/networks.ts'

/**
 * Result for one contract. `missing`: there is no code at the address. `different`: the code, or what it says, is not
 * what is expected; `detail` names both.
 */
export interface ContractCheck {
  readonly name: string
  readonly address: Address
  readonly status: 'ok' | 'missing' | 'different'
  readonly detail: string
}

/** Result of a comparison of what is at an address. */
type Verdict = Pick<ContractCheck, 'status' | 'detail'>

/** Checks whether a contract is one of ours, which the gateway can deploy. */
export function isOwnContract({ address }: Pick<ContractCheck, 'address'>): boolean {
  return Object.values(ownContracts).some((own) => own.address === address)
}

/** Checks every contract behind smart accounts, and every token. @throws when the node does not answer. */
export async function checkContracts(
  client: NodeClient,
  contracts: AccountContracts,
): Promise<readonly ContractCheck[]> {
  const { tokens } = chainFacts(requireChainName(client))
  const accounts = contractNames.map((contract) =>
    check(client, contract, contracts[contract], (code) => judgeAccount(client, contracts, contract, code)),
  )
  const money = stablecoins.flatMap((symbol) => {
    const token = tokens[symbol]
    return token === undefined
      ? []
      : [check(client, symbol, token.address, () => judgeToken(client, symbol, token))]
  })
  return Promise.all([...accounts, ...money])
}

const contractNames = [
  'entryPoint',
  'safe',
  'proxyFactory',
  'module',
  'moduleSetup',
  'passkeySigners',
  'passkeyVerifier',
  'allowances',
  'walletSetup',
  'swapDesk',
  'bridgeDesk',
] as const satisfies readonly (keyof AccountContracts)[]

async function check(
  client: NodeClient,
  name: string,
  address: Address,
  judge: (code: Hex) => Verdict | Promise<Verdict>,
): Promise<ContractCheck> {
  const code = await client.getCode({ address })
  if (!code) return { name, address, status: 'missing', detail: 'there is no contract' }
  return { name, address, ...(await judge(code)) }
}

async function judgeAccount(
  client: NodeClient,
  contracts: AccountContracts,
  name: keyof AccountContracts,
  code: Hex,
): Promise<Verdict> {
  const bytes = `${(code.length - 2) / 2} bytes`
  const pinned = codeHashes[name]
  if (pinned !== undefined) {
    const hash = keccak256(code)
    return hash === pinned
      ? { status: 'ok', detail: `${bytes}, code hash ${hash}` }
      : { status: 'different', detail: `its code hash is ${hash}, not ${pinned}` }
  }
  if (name !== 'module') return { status: 'ok', detail: `${bytes}; its code is not pinned` }
  const entryPoint = await tryRead(() =>
    client.readContract({ address: contracts.module, abi: moduleAbi, functionName: 'SUPPORTED_ENTRYPOINT' }),
  )
  return entryPoint === contracts.entryPoint
    ? { status: 'ok', detail: `${bytes}, for the EntryPoint ${entryPoint}` }
    : { status: 'different', detail: `its EntryPoint is ${entryPoint ?? 'unknown'}` }
}

async function judgeToken(
  client: NodeClient,
  symbol: Stablecoin,
  token: { readonly address: Address; readonly name: string; readonly version: string },
): Promise<Verdict> {
  const { address, name, version } = token
  const ask = (functionName: 'decimals' | 'symbol' | 'DOMAIN_SEPARATOR') =>
    tryRead(() => client.readContract({ address, abi: tokenAbi, functionName }))
  const [decimals, shown, separator] = await Promise.all([
    ask('decimals'),
    ask('symbol'),
    ask('DOMAIN_SEPARATOR'),
  ])
  const domain = { name, version, chainId: client.chain.id, verifyingContract: address }
  const expected = domainSeparator({ domain })
  const problems = [
    ...(decimals === assetDecimals[symbol]
      ? []
      : [`it has ${decimals ?? 'unknown'} decimals, not ${assetDecimals[symbol]}`]),
    ...(shown === symbol ? [] : [`its symbol is ${JSON.stringify(shown ?? null).slice(0, 40)}`]),
    ...(separator === expected
      ? []
      : [`its domain separator is ${separator ?? 'unknown'}, not ${expected} (${name}, version ${version})`]),
  ]
  return problems.length === 0
    ? { status: 'ok', detail: `${decimals} decimals, domain "${name}" version ${version}` }
    : { status: 'different', detail: problems.join('; ') }
}

/** Answer of a contract; undefined when it has none. @throws when the node does not answer. */
async function tryRead<Answer>(read: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await read()
  } catch (error) {
    if (isConnectionError(error)) throw error
    return undefined
  }
}
