import { pathToFileURL } from 'node:url'
import { recoverTypedDataAddress } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { clusterSnapshot } from '../../src/storage/cluster-snapshot.ts'
import type * as Graph from './gateway-graph.ts'

export type GatewayGraph = typeof Graph

let lives = 0

/** Evaluates a bundle of the gateway once more: its modules share nothing with an earlier one's. */
export function loadGateway(path: string): Promise<GatewayGraph> {
  lives += 1
  return import(`${pathToFileURL(path)}?life=${lives}`)
}

/** Loads what is loaded or made when it is needed first, which is no step of a simulation. */
export async function warmUp(): Promise<void> {
  await clusterSnapshot()
  const typed = {
    domain: { chainId: 1 },
    types: { Message: [{ name: 'text', type: 'string' }] },
    primaryType: 'Message',
    message: { text: '' },
  } as const
  const signature = await privateKeyToAccount(`0x${'1'.repeat(64)}`).signTypedData(typed)
  await recoverTypedDataAddress({ ...typed, signature })
}
