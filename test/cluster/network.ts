/**
 * Three machines as network namespaces, each with two links: one to the other nodes, one to the gateways, which run beside
 * them. A cut link drops every packet silently, as a failed switch does.
 */
import { existsSync } from 'node:fs'
import { run } from './programs.ts'

/** Links of a node. `nodes`: replication, Patroni and etcd. `gateways`: PostgreSQL, Redis and Sentinel as gateways reach them. */
export type Link = 'nodes' | 'gateways'

export interface Network {
  /** Command and arguments that run a program within a node's namespace. */
  readonly within: (node: number) => readonly [string, ...string[]]
  /** A node's address on a link. */
  readonly address: (node: number, link: Link) => string
  cut(node: number, link: Link): void
  join(node: number, link: Link): void
  /** Ids of all processes of a node. */
  listProcesses(node: number): number[]
  close(): void
}

const LINKS: readonly Link[] = ['nodes', 'gateways']

/** Opens `count` namespaces. Their addresses are of the range for measurements (RFC 2544), which no network routes. */
export function openNetwork(count: number): Network {
  removeLeftovers()
  const id = process.pid
  const block = 1 + (id % 250)
  const nodes = Array.from({ length: count }, (_, at) => at + 1)
  const nameOf = (node: number) => `bursar-${id}-${node}`
  const bridgeOf = (link: Link) => `bb${id}${link[0]}`
  const cableOf = (node: number, link: Link) => `bv${id}${link[0]}${node}`
  const network = (link: Link) => `198.${link === 'nodes' ? 18 : 19}.${block}`
  const address = (node: number, link: Link) => `${network(link)}.${node}`
  const close = () => {
    for (const node of nodes) quietly('ip', 'netns', 'del', nameOf(node))
    for (const link of LINKS) {
      for (const node of nodes) quietly('ip', 'link', 'del', cableOf(node, link))
      quietly('ip', 'link', 'del', bridgeOf(link))
    }
  }
  try {
    for (const link of LINKS) {
      run('ip', 'link', 'add', bridgeOf(link), 'type', 'bridge')
      run('ip', 'addr', 'add', `${network(link)}.254/24`, 'dev', bridgeOf(link))
      run('ip', 'link', 'set', bridgeOf(link), 'up')
    }
    for (const node of nodes) {
      const name = nameOf(node)
      run('ip', 'netns', 'add', name)
      run('ip', '-n', name, 'link', 'set', 'lo', 'up')
      for (const link of LINKS) {
        const cable = cableOf(node, link)
        run('ip', 'link', 'add', cable, 'type', 'veth', 'peer', 'name', link, 'netns', name)
        run('ip', 'link', 'set', cable, 'master', bridgeOf(link))
        run('ip', 'link', 'set', cable, 'up')
        run('ip', '-n', name, 'addr', 'add', `${address(node, link)}/24`, 'dev', link)
        run('ip', '-n', name, 'link', 'set', link, 'up')
      }
    }
  } catch (error) {
    close()
    throw error
  }
  return {
    within: (node) => ['ip', 'netns', 'exec', nameOf(node)],
    address,
    cut: (node, link) => {
      run('ip', 'link', 'set', cableOf(node, link), 'nomaster')
    },
    join: (node, link) => {
      run('ip', 'link', 'set', cableOf(node, link), 'master', bridgeOf(link))
    },
    listProcesses: (node) =>
      run('ip', 'netns', 'pids', nameOf(node))
        .split('\n')
        .filter((line) => line !== '')
        .map(Number),
    close,
  }
}

/** Ends what runs of killed test runs: their namespaces and processes stay otherwise. */
function removeLeftovers(): void {
  for (const [name = '', id = '', node = ''] of run('ip', 'netns', 'list').matchAll(/^bursar-(\d+)-(\d)/gm)) {
    if (existsSync(`/proc/${id}`)) continue
    for (const pid of run('ip', 'netns', 'pids', name).split('\n').filter(Boolean)) quietly('kill', '-9', pid)
    quietly('ip', 'netns', 'del', name)
    for (const link of LINKS) {
      quietly('ip', 'link', 'del', `bv${id}${link[0]}${node}`)
      quietly('ip', 'link', 'del', `bb${id}${link[0]}`)
    }
  }
}

function quietly(program: string, ...rest: string[]): void {
  try {
    run(program, ...rest)
  } catch {
    // It is gone already.
  }
}
