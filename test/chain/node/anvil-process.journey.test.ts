import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { describe, expect, it } from 'vitest'
import { findAnvil, spawnAnvil } from '../../../src/chain/node/anvil-process.ts'

const binary = (() => {
  try {
    return findAnvil(process.env.ANVIL_BIN)
  } catch {
    return undefined
  }
})()

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('anvil process', () => {
  it.skipIf(binary === undefined || process.platform === 'win32')(
    'exits with the gateway, even after SIGKILL',
    async () => {
      const module = new URL('../../../src/chain/node/anvil-process.ts', import.meta.url).href
      const program = `
        const { findAnvil, spawnAnvil } = await import(${JSON.stringify(module)})
        const { pid } = await spawnAnvil(findAnvil(process.env.ANVIL_BIN), 0, 10000)
        process.stdout.write(pid + '\\n')`
      const gateway = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const [line] = await once(createInterface(gateway.stdout), 'line')
      const pid = Number(line)
      expect(isAlive(pid)).toBe(true)
      gateway.kill('SIGKILL')
      await expect.poll(() => isAlive(pid), { timeout: 5_000 }).toBe(false)
    },
  )

  it('reports an invalid binary', async () => {
    await expect(spawnAnvil('/nonexistent/anvil', 0, 5_000)).rejects.toThrow(
      /anvil did not start.*\/nonexistent\/anvil/,
    )
  })

  it('accepts the configured binary', () => {
    expect(findAnvil('/opt/anvil')).toBe('/opt/anvil')
  })
})
