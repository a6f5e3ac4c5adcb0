/** The files for operators name metrics, labels and settings that exist. */
import { readFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readConfig, unknownVariables } from '../../src/core/config/read-config.ts'
import { startGateway } from '../journeys/gateway.ts'

const readPage = (name: string) => readFileSync(`docs/operating/${name}`, 'utf8')

describe('the alerts and the dashboard', () => {
  const used = [
    ...new Set(
      [...`${readPage('alerts.yaml')}${readPage('dashboard.json')}`.matchAll(/\bbursar_\w+/g)].map(
        ([name]) => name,
      ),
    ),
  ]

  it('name metrics that a gateway exposes', async () => {
    const gateway = await startGateway({ CHAIN: 'simulated', ANCHOR_CHAIN: 'base-sepolia' })
    onTestFinished(() => void gateway.stop())
    const text = await (await fetch(`${gateway.origin}/metrics`)).text()
    const kinds = new Map(
      [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', kind = '']) => [name, kind]),
    )
    const exposed = [...kinds].flatMap(([name, kind]) =>
      kind === 'histogram' ? [`${name}_count`, `${name}_bucket`, `${name}_sum`] : [name],
    )
    expect(used.length).toBeGreaterThan(10)
    expect(used.filter((name) => !exposed.includes(name))).toEqual([])
    // And the labels that they select or sum by, where the gateway has a series.
    for (const [, name = '', labels = ''] of text.matchAll(
      /^(bursar_(?:open|up|database_connections))\{([^}]*)\}/gm,
    ))
      expect([name, labels]).toEqual([name, expect.stringMatching(/kind=|part=|state=/)])
  })
})

describe('the settings of the example', () => {
  const names = [...readPage('env.example').matchAll(/^([A-Z0-9_]+)=/gm)].map(([, name = '']) => name)

  it('exist, and are all that production requires', () => {
    expect(unknownVariables(Object.fromEntries(names.map((name) => [name, 'x'])))).toEqual([])
    const missing = () => readConfig({ MODE: 'production', CHAINS: 'base' })
    expect(missing).toThrow('missing')
    try {
      missing()
    } catch (error) {
      const required = [...String(error).matchAll(/^ {2}(\w+): missing/gm)].map(([, name = '']) => name)
      expect(required.length).toBeGreaterThan(5)
      expect(required.filter((name) => !names.includes(name) && !names.includes(`${name}_FILE`))).toEqual([])
    }
  })
})
