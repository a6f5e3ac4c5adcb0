/**
 * Global setup: gateways that all journeys of people and agents use through {@link sharedGateway}, with the settings of a new
 * installation but for {@link forManyTests}. Accounts are isolated from each other, so each journey opens its own. A worker
 * keeps to one gateway; two serve all workers, because a gateway with many accounts is never at rest.
 */
import type { TestProject } from 'vitest/node'
import { forManyTests, type Gateway, startGateway } from './journeys/gateway.ts'

const GATEWAYS = 2

declare module 'vitest' {
  interface ProvidedContext {
    readonly gateways: readonly string[]
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const started: readonly Gateway[] = await Promise.all(
    Array.from({ length: GATEWAYS }, () => startGateway(forManyTests)),
  )
  project.provide(
    'gateways',
    started.map(({ origin }) => origin),
  )
  return async () => {
    await Promise.all(started.map(({ stop }) => stop()))
    // No request of any journey may be answered with a defect.
    const defects = started.flatMap(({ output }) => output().match(/.*unexpected error.*/g) ?? [])
    if (defects.length > 0)
      throw new Error(`A shared gateway reported unexpected errors:\n${defects.join('\n')}`)
  }
}
