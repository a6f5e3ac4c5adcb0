/** PgBouncer in transaction mode before the test server, with fewer server connections than a gateway has clients. */
import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { freePort } from '../free-port.ts'

const PROGRAM = '/usr/sbin/pgbouncer'

export const hasPooler = existsSync(PROGRAM)

/** @param url database behind the pooler. @returns its address through the pooler. */
export async function startPooler(url: string): Promise<{ url: string; close: () => Promise<void> }> {
  const { hostname, port, pathname, username } = new URL(url)
  const root = mkdtempSync(join(tmpdir(), 'bursar-pooler-'))
  const listening = await freePort()
  const users = join(root, 'users.txt')
  writeFileSync(users, `"${username}" ""\n`)
  writeFileSync(
    join(root, 'pgbouncer.ini'),
    [
      '[databases]',
      `${pathname.slice(1)} = host=${hostname} port=${port || 5432}`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${listening}`,
      'unix_socket_dir =',
      'auth_type = trust',
      `auth_file = ${users}`,
      'pool_mode = transaction',
      'default_pool_size = 4',
      'max_client_conn = 100',
    ].join('\n'),
  )
  // It refuses to run as root.
  const isRoot = process.getuid?.() === 0
  if (isRoot) {
    chmodSync(root, 0o755)
    execFileSync('chown', ['-R', 'postgres', root])
  }
  const child = spawn(PROGRAM, [...(isRoot ? ['-u', 'postgres'] : []), join(root, 'pgbouncer.ini')], {
    stdio: 'ignore',
  })
  const pooled = new URL(url)
  pooled.hostname = '127.0.0.1'
  pooled.port = String(listening)
  await untilConnected(pooled.href)
  return {
    url: pooled.href,
    close: async () => {
      child.kill('SIGINT')
      await new Promise((resolve) => child.once('exit', resolve))
      rmSync(root, { recursive: true, force: true })
    },
  }
}

async function untilConnected(url: string): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const client = new pg.Client({ connectionString: url })
    try {
      await client.connect()
      await client.end()
      return
    } catch (error) {
      await client.end().catch(() => {})
      if (attempt === 100) throw error
      await pause(100)
    }
  }
}
