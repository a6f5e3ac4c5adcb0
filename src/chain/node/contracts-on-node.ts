/** The contracts on a configured node, for commands: compared, and our own deployed. */
import type { Clock } from '../../core/base/clock.ts'
import type { Log } from '../../core/base/log.ts'
import { type ChainName, chainFacts } from '../../core/money/chains.ts'
import type { ChainKey } from '../../providers/keys/port.ts'
import { createNodeClient, remoteNodeOptions, requireChainId } from '../rpc/client.ts'
import { isDevelopmentNode } from '../rpc/development-node.ts'
import { canonicalContracts } from '../rpc/networks.ts'
import { developmentContracts } from './deploy.ts'
import { createSponsor, type DeployedContract, deployOwn } from './public-session.ts'
import { type ContractCheck, checkContracts } from './trusted-contracts.ts'

/** A node. @property variable names its URL in the configuration. */
export interface ConfiguredNode {
  readonly name: ChainName
  readonly url: string
  readonly variable: string
}

/** Compares every contract. @throws Error for a node of another chain, or one that does not answer. */
export async function checkContractsOn({
  name,
  url,
  variable,
}: ConfiguredNode): Promise<readonly ContractCheck[]> {
  const client = createNodeClient(remoteNodeOptions(name, url))
  await requireChainId(client, variable)
  // A development node has the installed contracts, some of which are at other addresses than the public ones.
  const isDevelopment = chainFacts(name).isTest && (await isDevelopmentNode(client))
  return checkContracts(client, isDevelopment ? developmentContracts() : canonicalContracts)
}

/** Deploys our own contracts. @throws Error as {@link checkContractsOn}, and when one is still missing. */
export async function deployContractsOn(
  { name, url, variable }: ConfiguredNode,
  { sponsor, clock, log }: { readonly sponsor: ChainKey | null; readonly clock: Clock; readonly log: Log },
): Promise<readonly DeployedContract[]> {
  const client = createNodeClient(remoteNodeOptions(name, url))
  await requireChainId(client, variable)
  return deployOwn({ client, relayer: createSponsor(client, clock, sponsor), log })
}
