/**
 * Proxy for a node connection that can be cut at a step of a transaction's life: before it is sent, after, or once it
 * is mined.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { text } from 'node:stream/consumers'

/** Step at which to cut: when the nth transaction arrives, once the node has it, or when its receipt is requested. */
export type Step = 'before broadcast' | 'after broadcast' | 'at the receipt'

export interface ChainProxy {
  readonly url: string
  /** Runs `fault` at a step of the nth transaction from now, and breaks the caller's connection. */
  cut(step: Step, nth: number, fault: () => Promise<void>): void
  /** Keeps every request waiting until it is called with false, as a node that does not answer. */
  silence(isSilent: boolean): void
  close(): Promise<void>
}

/** Starts a proxy. @param nodeUrl may change while it runs. */
export async function startChainProxy(nodeUrl: () => string): Promise<ChainProxy> {
  let plan: { step: Step; left: number; fault: () => Promise<void> } | undefined
  let silent: { promise: Promise<void>; resolve: () => void } | undefined
  const takes = (step: Step, isDue: boolean): (() => Promise<void>) | undefined => {
    if (plan?.step !== step || !isDue) return undefined
    plan.left -= 1
    if (plan.left > 0) return undefined
    const { fault } = plan
    plan = undefined
    return fault
  }
  const server: Server = createServer(async (request, response) => {
    try {
      const body = await text(request)
      await silent?.promise
      const isBroadcast = body.includes('"eth_sendRawTransaction"')
      const before = takes('before broadcast', isBroadcast)
      if (before !== undefined) {
        await before()
        return void response.destroy()
      }
      const headers = { 'content-type': 'application/json' }
      const answer = await (await fetch(nodeUrl(), { method: 'POST', headers, body })).text()
      const isReceipt = body.includes('"eth_getTransactionReceipt"') && answer.includes('"blockHash"')
      const after = takes('after broadcast', isBroadcast) ?? takes('at the receipt', isReceipt)
      if (after !== undefined) {
        await after()
        return void response.destroy()
      }
      response.writeHead(200, headers).end(answer)
    } catch {
      response.destroy()
    }
  }).listen(0, '127.0.0.1')
  // A gateway that starts on a busy machine pauses for longer than the five seconds after which idle connections are closed.
  server.keepAliveTimeout = 120_000
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    cut: (step, nth, fault) => {
      plan = { step, left: nth, fault }
    },
    silence: (isSilent) => {
      silent?.resolve()
      silent = undefined
      if (!isSilent) return
      let resolve = () => {}
      const promise = new Promise<void>((done) => {
        resolve = done
      })
      silent = { promise, resolve }
    },
    close: async () => {
      silent?.resolve()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
