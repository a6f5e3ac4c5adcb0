import { once } from 'node:events'
import type { Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Starts a server on a free port. @returns its origin. */
export async function listenLocally(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  // A listening server has an address object with a port.
  const { port } = server.address() as AddressInfo
  return `http://127.0.0.1:${port}`
}

/** An answer in JSON. */
export const json =
  (body: unknown, status = 200) =>
  (response: ServerResponse) =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
