/** Where a program's request goes, and whether it may. */
import { lookup } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { addressIsPublic, stripBrackets } from '../../providers/public-url.ts'
import type { Problem } from './problem.ts'

/** @property host without brackets and final dot. @property name the host as a URL writes it. */
export interface Target {
  readonly isSecure: boolean
  readonly host: string
  readonly port: number
  readonly name: string
}

export interface TargetRules {
  /** @throws TargetRefused for an address that is not permitted. Names are judged by {@link TargetRules.lookup}. */
  readonly judge: (target: Pick<Target, 'host' | 'port'>) => void
  /** Resolves as other programs of this machine do; every address is judged before a connection is made to it. */
  readonly lookup: (target: Pick<Target, 'host' | 'port'>) => LookupFunction
}

export class TargetRefused extends Error {
  readonly code: 'private_address' | 'proxy_loop'
  constructor(code: 'private_address' | 'proxy_loop', message: string) {
    super(message)
    this.code = code
  }
}

export function describeRefusal({ code, message }: TargetRefused): Problem {
  return { code, detail: message, hint: 'Private addresses need --allow-private.' }
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')
/** Addresses that reach a listener on 127.0.0.1. */
const OWN_ADDRESSES = ['127.0.0.1', '0.0.0.0', '::', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:0:0']

/**
 * Permits public addresses and the gateway; the loopback of this machine where the gateway's money is play money.
 * @param own port of the proxy, which never connects to itself.
 */
export function createTargetRules({
  own,
  gateway,
  allowPrivate,
  allowLoopback,
}: {
  readonly own: () => number
  readonly gateway: URL
  readonly allowPrivate: boolean
  readonly allowLoopback: () => boolean
}): TargetRules {
  const exempt = readTarget(gateway)
  const check = (address: string, { host, port }: Pick<Target, 'host' | 'port'>) => {
    if (port === own() && OWN_ADDRESSES.includes(address))
      throw new TargetRefused('proxy_loop', `${host}:${port} is the proxy itself.`)
    const isGateway = host === exempt.host && port === exempt.port
    const isLoopback = loopback.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
    if (allowPrivate || isGateway || addressIsPublic(address) || (isLoopback && allowLoopback())) return
    throw new TargetRefused('private_address', `${host} is not on the public internet: ${address}.`)
  }
  return {
    judge: (target) => {
      if (isIP(target.host) !== 0) check(target.host, target)
    },
    lookup: (target) => (host, options, callback) =>
      lookup(host, { ...options, all: true }, (error, addresses) => {
        if (error !== null) return callback(error, '')
        try {
          for (const { address } of addresses) check(address, target)
        } catch (refusal) {
          return callback(refusal instanceof Error ? refusal : new Error(String(refusal)), '')
        }
        const [first] = addresses
        if (options.all === true || first === undefined) return callback(null, addresses)
        callback(null, first.address, first.family)
      }),
  }
}

/** The target of an absolute URL. */
export function readTarget({ protocol, hostname, port }: URL): Target {
  const isSecure = protocol === 'https:'
  return {
    isSecure,
    host: stripBrackets(hostname).replace(/\.$/, ''),
    port: port === '' ? (isSecure ? 443 : 80) : Number(port),
    name: hostname,
  }
}

/** The target of a CONNECT: `host:port`. @returns null for anything else. */
export function readAuthority(text: string): Omit<Target, 'isSecure'> | null {
  const [, host = '', port = ''] = /^(\[[\da-f:.]+\]|[\w.-]{1,253}):(\d{1,5})$/i.exec(text) ?? []
  if (host === '' || Number(port) < 1 || Number(port) > 65_535 || !URL.canParse(`http://${text}`)) return null
  const url = new URL(`http://${text}`)
  return { host: stripBrackets(url.hostname).replace(/\.$/, ''), port: Number(port), name: url.hostname }
}

/** Host and port as a URL has them: the scheme's own port is left out. */
export function writeAuthority({ name, port, isSecure }: Target): string {
  return port === (isSecure ? 443 : 80) ? name : `${name}:${port}`
}

/** Scheme, host and port. */
export function writeOrigin(target: Target): string {
  return `http${target.isSecure ? 's' : ''}://${writeAuthority(target)}`
}
