/** Reads a Dockerfile and carries out its last stage in a directory of this machine, for machines without a container engine. */
import { execFileSync, type SpawnOptions, spawn } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { z } from 'zod'

interface Instruction {
  readonly name: string
  readonly text: string
}

/** @property name of `AS`; empty without one. */
export interface Stage {
  readonly name: string
  readonly instructions: readonly Instruction[]
}

/** @throws Error for a file that does not begin with FROM or ARG. */
export function readStages(path: string): readonly Stage[] {
  const lines = readFileSync(path, 'utf8')
    .replaceAll(/^\s*#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
  const stages: { name: string; instructions: Instruction[] }[] = []
  for (const line of lines) {
    const [, name = '', text = ''] = /^(\w+)\s+(.*)$/.exec(line.trim()) ?? []
    if (name === 'FROM') stages.push({ name: / AS (\w+)$/i.exec(text)?.[1] ?? '', instructions: [] })
    else stages.at(-1)?.instructions.push({ name, text })
  }
  return stages
}

/** What a stage left: a root directory, and how its process starts. */
export interface Image {
  /** Runs a command as the image's user, in its directory. */
  run(command: readonly string[]): string
  /** Starts the image's command, with a root file system that nobody can write to. @param env added to the image's environment. */
  start(env: Record<string, string>): ReturnType<typeof spawn>
  readonly healthCheck: readonly string[]
  remove(): void
}

const execForm = (text: string): readonly string[] => z.array(z.string()).parse(JSON.parse(text))

/** Variables of this machine that an installation needs to reach its registry. */
const network = /^(https?_proxy|no_proxy|node_extra_ca_certs|ssl_cert_\w+|npm_config_(registry|cafile))$/i

/**
 * Carries out a stage in a new root directory, which holds its files only: the programs of this machine are mounted for the
 * time of each command, in a mount namespace of its own. Needs the rights of root.
 * @param context directory of `COPY`. @param built directory of each stage that `COPY --from` names, for its `WORKDIR`.
 */
export function carryOut(
  { instructions }: Stage,
  { context, built }: { readonly context: string; readonly built: ReadonlyMap<string, string> },
): Image {
  const root = prepareRoot()
  const remove = () => {
    // Fails when one is not empty: then something is still mounted, and nothing is deleted.
    for (const place of mounted) rmdirSync(join(root, place))
    rmSync(root, { recursive: true, force: true })
  }
  let workingDirectory = '/'
  let user = 'root'
  let command: readonly string[] = []
  let healthCheck: readonly string[] = []
  const env: Record<string, string> = {
    PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin`,
  }
  const volumes: string[] = []
  const enter = (words: readonly string[], more: Record<string, string> = {}, isReadOnly = false) => {
    const script = `${isReadOnly ? seal(root, volumes) : mounts(root)} exec chroot --userspec=${user}:${user} ${root} /bin/sh -c 'cd "$0" && exec "$@"' ${workingDirectory} "$@"`
    const home = user === 'root' ? '/root' : `/home/${user}`
    return [
      'unshare',
      ['--mount', 'sh', '-ec', script, 'sh', ...words],
      { ...env, HOME: home, ...more },
    ] as const
  }
  const run = (words: readonly string[], more: Record<string, string> = {}) => {
    const [file, args, variables] = enter(words, more)
    return execFileSync(file, args, { env: variables, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  }
  try {
    for (const { name, text } of instructions) {
      switch (name) {
        case 'WORKDIR':
          workingDirectory = resolve(workingDirectory, text)
          mkdirSync(join(root, workingDirectory), { recursive: true })
          break
        case 'ENV':
          for (const pair of text.split(/\s+/)) {
            const [, variable = '', value = ''] = /^([^=]*)=(.*)$/.exec(pair) ?? []
            env[variable] = value
          }
          break
        case 'COPY': {
          const words = text.split(/\s+/)
          const from = words.find((word) => word.startsWith('--from='))?.slice('--from='.length)
          const [to = '', ...sources] = words.filter((word) => !word.startsWith('--')).toReversed()
          const place = join(root, resolve(workingDirectory, to), to.endsWith('/') ? '/' : '')
          for (const source of sources)
            if (from === undefined) copy(join(context, source), place)
            // The stage's working directory is this directory.
            else copy(join(built.get(from) ?? missing(from), source.replace(/^\/\w+\//, '')), place)
          break
        }
        case 'RUN':
          run(['/bin/sh', '-c', text], networkEnvironment())
          break
        case 'USER':
          user = text
          break
        case 'CMD':
          command = execForm(text)
          break
        case 'HEALTHCHECK':
          healthCheck = execForm(text.slice(text.indexOf('CMD') + 'CMD'.length))
          break
        case 'VOLUME':
          volumes.push(text)
          break
        case 'ARG':
        case 'EXPOSE':
          break
        default:
          throw new Error(`${name}: this instruction is not known here.`)
      }
    }
  } catch (error) {
    remove()
    throw error
  }
  return {
    run,
    start: (more) => {
      const [file, args, variables] = enter(command, more, true)
      const options: SpawnOptions = { env: variables, stdio: ['ignore', 'pipe', 'pipe'] }
      return spawn(file, args, options)
    },
    healthCheck,
    remove,
  }
}

function missing(stage: string): never {
  throw new Error(`There is no stage ${stage}.`)
}

function networkEnvironment(): Record<string, string> {
  const given = Object.entries(process.env).flatMap(([name, value]) =>
    value !== undefined && network.test(name) ? [[name, value] as const] : [],
  )
  return { ...Object.fromEntries(given), npm_config_prefer_offline: 'true' }
}

/** Directories of this machine that a command needs, below the new root. */
const mounted = ['usr', 'opt', 'proc', 'dev', 'etc/ssl'].filter((place) => existsSync(`/${place}`))

function mounts(root: string): string {
  return mounted.map((place) => `mount --rbind /${place} ${root}/${place};`).join(' ')
}

/** Makes a root read-only in this mount namespace, but for its volumes and `/tmp`. */
function seal(root: string, volumes: readonly string[]): string {
  const writable = [...volumes, '/tmp'].map((place) => `mount --bind ${root}${place} ${root}${place};`)
  return [
    `mount --bind ${root} ${root};`,
    mounts(root),
    ...writable,
    `mount -o remount,bind,ro ${root};`,
  ].join(' ')
}

function prepareRoot(): string {
  const root = mkdtempSync(join(tmpdir(), 'bursar-image-'))
  for (const place of [...mounted, 'root', 'home/node', 'tmp', 'var/lib'])
    mkdirSync(join(root, place), { recursive: true })
  for (const name of ['bin', 'sbin', 'lib', 'lib64'])
    if (existsSync(`/${name}`) && lstatSync(`/${name}`).isSymbolicLink())
      symlinkSync(readlinkSync(`/${name}`), join(root, name))
  for (const name of ['resolv.conf', 'hosts', 'nsswitch.conf'])
    if (existsSync(`/etc/${name}`)) copyFileSync(`/etc/${name}`, join(root, 'etc', name))
  // The user of the base image.
  writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n')
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\nnode:x:1000:\n')
  const npmrc = join(homedir(), '.npmrc')
  if (existsSync(npmrc)) copyFileSync(npmrc, join(root, 'root/.npmrc'))
  // The packages that this machine has downloaded; links, because the image removes its own cache.
  const cache = join(homedir(), '.npm/_cacache')
  if (existsSync(cache)) {
    mkdirSync(join(root, 'root/.npm'))
    execFileSync('cp', ['-al', cache, join(root, 'root/.npm/')])
  }
  execFileSync('chmod', ['755', root])
  return root
}

/** As `COPY`: a directory's content, files by a pattern in their last part, or one file. */
function copy(source: string, to: string): void {
  if (source.includes('*')) {
    const pattern = new RegExp(`^${basename(source).replaceAll('.', '\\.').replaceAll('*', '.*')}$`)
    const found = readdirSync(dirname(source)).filter((name) => pattern.test(name))
    for (const name of found) copy(join(dirname(source), name), `${to}/`)
    return
  }
  const isFile = statSync(source).isFile()
  const target =
    isFile && (to.endsWith('/') || (existsSync(to) && statSync(to).isDirectory()))
      ? join(to, basename(source))
      : to
  mkdirSync(dirname(target), { recursive: true })
  cpSync(source, target, { recursive: true })
}

/** True if this machine lets a process mount directories in a namespace of its own. */
export function canCarryOut(): boolean {
  try {
    execFileSync('unshare', ['--mount', 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
