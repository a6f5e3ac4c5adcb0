/** A node that is too busy to answer for a moment does not end a start, and is not taken for one of another kind. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type AnvilProcess, findAnvil, spawnAnvil } from '../../../src/chain/node/anvil-process.ts'
import { connectRpcChain } from '../../../src/chain/rpc.ts'
import { systemClock } from '../../../src/core/base/clock.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { hasAnvil } from '../../rails/selling/x402/world.ts'

describe.skipIf(!hasAnvil())('a busy node', () => {
  let node: AnvilProcess
  let server: Server
  let url: string
  let unanswered = 0
  beforeAll(async () => {
    node = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10_000)
    server = createServer(async (request, response) => {
      const body = await text(request)
      if (unanswered > 0) {
        unanswered -= 1
        return
      }
      const headers = { 'content-type': 'application/json' }
      response
        .writeHead(200, headers)
        .end(await (await fetch(node.url, { method: 'POST', headers, body })).text())
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }, 30_000)
  afterAll(async () => {
    server?.closeAllConnections()
    server?.close()
    await node?.stop()
  })

  it('is asked again at start', async () => {
    // The first question about its kind, and the first about its chain.
    unanswered = 2
    const chain = await connectRpcChain({ name: 'base-sepolia', url, clock: systemClock, log: silentLog })
    expect(chain.isGasFree).toBe(true)
    expect(unanswered).toBe(0)
    await chain.close()
  }, 60_000)
})
