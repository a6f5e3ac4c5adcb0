/** A gateway on a node of its own, whose blocks and faults belong to one suite. */
import { afterAll, beforeAll } from 'vitest'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../src/chain/node/anvil-process.ts'
import { type Gateway, startGateway } from './gateway.ts'

/** @property node replaced where a suite stops it and starts another. */
export interface OwnNode {
  node: AnvilProcess
  readonly gateway: Gateway
}

/** Starts both before the suite. @returns them, within tests and hooks. */
export function startOnOwnNode(): () => OwnNode {
  let own: OwnNode | undefined
  beforeAll(async () => {
    const node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
    own = { node, gateway: await startGateway({ CHAIN_RPC_URL: node.url }) }
  }, 90_000)
  afterAll(async () => {
    await own?.gateway.stop()
    await own?.node.stop()
  })
  return () => {
    if (own === undefined) throw new Error('They start before the tests.')
    return own
  }
}
