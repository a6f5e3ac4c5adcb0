/**
 * State of a new local chain with every contract deployed, as a file in `.cache/`: deploying them is most of a chain's
 * start. It holds the contracts only, so that a chain begins at block 0 and at the present. The file name covers the code.
 */
import { createHash } from 'node:crypto'
import { access } from 'node:fs/promises'
import { gunzipSync } from 'node:zlib'
import { z } from 'zod'
import { cachePath, storeInCache } from '../../core/base/cache-files.ts'
import { VERSION } from '../../core/base/version.ts'
import type { ChainName } from '../../core/money/chains.ts'
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
import type { NodeClient } from '../rpc/client.ts'
import { dumpState } from '../rpc/development-node.ts'
import { ownContracts, type SandboxTokens } from '../rpc/networks.ts'

/** A chain's prepared state. @property isMade whether the file exists; if not, {@link storePreparedState} makes it. */
export interface PreparedState {
  readonly name: string
  readonly path: string
  readonly isMade: boolean
}

export async function findPreparedState(chain: ChainName, tokens: SandboxTokens): Promise<PreparedState> {
  const hash = createHash('sha256')
    .update(JSON.stringify([VERSION, loadCreationCode(), ownContracts, tokens]))
    .update([sandboxMulticallCode, sandboxStablecoinCode, sandboxTetherCode].join())
    .update(
      [sandboxPermit2Code, sandboxUptoProxyCode, sandboxChannelsCode, sandboxDepositCollectorCode].join(),
    )
    .update([sandboxPoolCode, sandboxLiarCode].join())
    .update([sandboxMessengerCode, sandboxTransmitterCode].join())
    .update([sandboxEscrowCode, sandboxEscrowCollectorCode].join())
    .digest('hex')
  const name = `${chain}-${hash.slice(0, 16)}.json`
  const path = cachePath(name)
  const isMade = await access(path).then(
    () => true,
    () => false,
  )
  return { name, path, isMade }
}

const dump = z.object({ accounts: z.record(z.string(), z.looseObject({ code: z.string() })) })

/** Stores the contracts of a node on which they have just been deployed, as anvil's `--load-state` reads it. */
export async function storePreparedState(
  client: NodeClient,
  { name }: PreparedState,
  chain: ChainName,
): Promise<void> {
  const { accounts } = dump.parse(JSON.parse(gunzipSync(await dumpState(client)).toString()))
  // All of them: constructors deploy some that nothing else names.
  const contracts = Object.entries(accounts).filter(([, { code }]) => code !== '0x')
  const state = {
    // Without a block, the chain begins at its usual first one, and at the present.
    block: null,
    best_block_number: 0,
    blocks: [],
    transactions: [],
    accounts: Object.fromEntries(contracts),
  }
  await storeInCache(name, JSON.stringify(state), new RegExp(`^${chain}-\\w+\\.json$`))
}
