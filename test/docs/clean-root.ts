/** A Debian root file system with nothing but its base, in namespaces of its own: for commands that a page tells an operator. */
import { type ExecFileSyncOptions, execFileSync, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'

const RELEASE = 'bookworm'
const CACHE = resolve('.cache/clean-root')

/** Undefined where a root can be built; otherwise the reason why not. */
export function whyNoRoot(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root can build a root file system'
  const missing = ['mmdebstrap', 'unshare', 'ip'].filter((name) => spawnSync('which', [name]).status !== 0)
  return missing.length > 0 ? `not installed: ${missing.join(', ')}` : undefined
}

/** Runs what needs the network of this machine, once for the same key. @returns the directory that `fill` filled. */
function cached(name: string, key: string, fill: (directory: string) => void): string {
  const place = join(CACHE, `${name}-${createHash('sha256').update(key).digest('hex').slice(0, 12)}`)
  if (existsSync(place)) return place
  mkdirSync(CACHE, { recursive: true })
  const unfinished = `${place}.${process.pid}`
  fill(unfinished)
  renameSync(unfinished, place)
  return place
}

const quiet: ExecFileSyncOptions = { stdio: ['ignore', 'ignore', 'inherit'] }

/** The base of Debian. The packages lie in its cache of apt, not installed: within there is no network. */
function buildBase(packages: readonly string[]): string {
  return cached('base', `${RELEASE} ${packages.join(' ')}`, (directory) => {
    const download = `APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get install -qq --download-only --no-install-recommends ${packages.join(' ')}`
    const options = [
      ...['--quiet', '--variant=minbase', '--include=procps'],
      ...['--skip=cleanup/apt', `--customize-hook=${download}`],
    ]
    execFileSync('mmdebstrap', [...options, RELEASE, directory], quiet)
  })
}

/** Node as its site offers it: programs, headers and npm, as one archive. */
function packNode(): string {
  const prefix = dirname(dirname(process.execPath))
  const name = `node-${process.version}-linux-x64`
  const place = cached('node', `${process.version} ${prefix}`, (directory) => {
    mkdirSync(directory)
    const programs = ['bin/node', 'bin/npm', 'bin/npx', 'include/node', 'lib/node_modules/npm']
    const archive = join(directory, `${name}.tar.gz`)
    const rename = ['-I', 'gzip -1', '--transform', `s,^,${name}/,S`]
    execFileSync('tar', ['-c', ...rename, '-f', archive, '-C', prefix, ...programs], quiet)
  })
  return join(place, `${name}.tar.gz`)
}

/** A cache of npm with everything that installing the package asks the registry for. @param more packages beside it. */
function fillNpmCache(tarball: string, more: readonly string[]): string {
  const lock = execFileSync('tar', ['-xzOf', tarball, 'package/npm-shrinkwrap.json'], { maxBuffer: 64e6 })
  return cached('npm', `installed ${lock} ${more.join(' ')} ${process.version}`, (cache) => {
    const folder = mkdtempSync(join(tmpdir(), 'bursar-npm-'))
    const npm = (...words: readonly string[]) =>
      execFileSync('npm', [...words, '--cache', cache, '--ignore-scripts', '--no-audit', '--no-fund'], {
        cwd: folder,
        ...quiet,
      })
    writeFileSync(join(folder, 'package.json'), '{ "private": true }')
    npm('install', '--omit=optional', tarball, ...more)
    rmSync(folder, { recursive: true, force: true })
  })
}

export interface CleanRoot {
  /** Starts a script of bash within, as root. @param ports of this machine that are reached within by the same address. */
  start(script: string, ports: readonly number[]): Promise<ReturnType<typeof spawn>>
  remove(): Promise<void>
}

/** Listens on each port within the namespace, and passes connections to the socket of the same name outside. */
const relay = `
  const net = require('node:net')
  const [directory, ...ports] = process.argv.slice(1)
  for (const port of ports)
    net.createServer((inner) => {
      const outer = net.connect(directory + '/' + port)
      for (const [one, other] of [[inner, outer], [outer, inner]]) one.on('error', () => other.destroy()).pipe(other)
    }).listen(Number(port), '127.0.0.1')`

/**
 * Opens one with the files that an operator brings: the archive of Node and the package, both in /root.
 * @param packages that apt shall find. @param npmPackages likewise, of npm. @param names of this machine within.
 */
export function openCleanRoot({
  tarball,
  packages,
  npmPackages,
  names,
}: {
  readonly tarball: string
  readonly packages: readonly string[]
  readonly npmPackages: readonly string[]
  readonly names: readonly string[]
}): CleanRoot {
  const base = buildBase(packages)
  const cache = fillNpmCache(tarball, npmPackages)
  const node = packNode()
  const place = mkdtempSync(join(tmpdir(), 'bursar-root-'))
  const at = (...path: readonly string[]) => join(place, ...path)
  for (const part of ['upper/root', 'upper/etc', 'work', 'root', 'sockets'])
    mkdirSync(at(part), { recursive: true })
  for (const file of [node, tarball]) copyFileSync(file, at('upper/root', basename(file)))
  writeFileSync(at('upper/etc/hosts'), `127.0.0.1 localhost ${names.join(' ')}\n::1 localhost\n`)
  writeFileSync(at('upper/etc/resolv.conf'), '')
  const servers: ReturnType<typeof createServer>[] = []
  const root = at('root')
  // The base is never written to: what a run writes lies above it, without waiting for the disk.
  const enter = [
    `mount -t overlay -o volatile,lowerdir=${base},upperdir=${at('upper')},workdir=${at('work')} overlay ${root}`,
    `mount -t proc proc ${root}/proc`,
    `mount --rbind /dev ${root}/dev`,
    ...['dev/shm', 'run', 'tmp'].map((path) => `mount -t tmpfs -o mode=1777 tmpfs ${root}/${path}`),
    `mkdir -p ${root}/root/.npm && mount --bind ${cache} ${root}/root/.npm`,
    'ip link set lo up',
    `${process.execPath} -e "$RELAY" ${at('sockets')} $PORTS &`,
    `exec env -i HOME=/root USER=root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin npm_config_offline=true chroot ${root} /bin/bash /root/page.sh`,
  ].join('\n')
  return {
    start: async (script, ports) => {
      writeFileSync(at('upper/root/page.sh'), script)
      for (const port of ports) {
        const server = createServer((inner) => {
          const outer = connect(port, '127.0.0.1')
          inner.on('error', () => outer.destroy()).pipe(outer)
          outer.on('error', () => inner.destroy()).pipe(inner)
        }).listen(at('sockets', String(port)))
        servers.push(server)
        await once(server, 'listening')
      }
      const spaces = ['--mount', '--pid', '--net', '--fork', '--kill-child', '--propagation', 'private']
      return spawn('unshare', [...spaces, 'sh', '-ec', enter], {
        env: { PATH: process.env.PATH, RELAY: relay, PORTS: ports.join(' ') },
        stdio: 'pipe',
      })
    },
    remove: async () => {
      for (const server of servers) server.close()
      rmSync(place, { recursive: true, force: true })
    },
  }
}

/** The blocks of shell commands on a page, in order. */
export function readCommands(page: string): readonly string[] {
  return [...readFileSync(page, 'utf8').matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text)
}
