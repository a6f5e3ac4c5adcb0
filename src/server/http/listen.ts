import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Config } from '../../core/config/read-config.ts'

/** @returns the origin that it listens on. @throws Error that says what to do where the port is taken. */
export function listen(server: Server, { host, port }: Pick<Config, 'host' | 'port'>): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'EADDRINUSE'
          ? new Error(`Port ${port} on ${host} is taken. Set PORT to another one.`)
          : new Error(`HOST, PORT: ${error.message}`),
      )
    })
    server.listen(port, host, () => resolve(ownOrigin(server, { host, port })))
  })
}

/** Where a server that listens is reached from this machine, as clients write it: without the port where it is 80. */
export function ownOrigin(server: Server, { host, port }: Pick<Config, 'host' | 'port'>): string {
  const address = server.address()
  const bound = isAddressInfo(address) ? address.port : port
  return new URL(`http://${toUrlHost(host)}:${bound}`).origin
}

/** How clients on this machine name a host that is listened on: every address is none to connect to. */
function toUrlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

function isAddressInfo(address: string | AddressInfo | null): address is AddressInfo {
  return typeof address === 'object' && address !== null
}
